import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Instance, startInstance, temporaryFolder } from './instance.ts'
import { median, ms, print, samples, time } from './measure.ts'

const FILES = 20
const TESTS_OF_A_FILE = 10
const WORKERS = 4

/** A suite with an account for each test, in parallel workers; and what an account costs beside a reset and an instance. */
export async function benchSuite(): Promise<void> {
  await using berth = await startInstance(undefined, ['--project-ports', '5750-5799'])
  const alone = await runSuite(berth, 1)
  const parallel = await runSuite(berth, WORKERS)
  const count = FILES * TESTS_OF_A_FILE
  const left = (await berth.control('GET', '/accounts')).accounts.length - 1
  print(`A suite of ${count} tests with an account each (isolation ${berth.isolation})`, [
    {
      what: `passed in ${WORKERS} workers; the others met something of another test`,
      measured: String(parallel.passed),
      goal: String(count),
      met: parallel.passed === count && parallel.failed === 0,
    },
    {
      what: `wall time in ${WORKERS} workers`,
      measured: ms(parallel.took),
      baseline: `in 1: ${ms(alone.took)} (${alone.passed} passed)`,
      ratio: `${(alone.took / parallel.took).toFixed(2)} × faster`,
    },
    { what: 'accounts left behind', measured: String(left), goal: '0', met: left === 0 },
    ...(await ways(berth)),
  ])
}

/** What it costs a test to have nothing of others before it, with nothing made and with one server to be rid of. */
async function ways(berth: Instance) {
  const account = (servers: boolean) =>
    samples(20, 3, async () => {
      const { id, api_key } = await berth.control('POST', '/accounts')
      if (servers) await serverOf(berth.url, api_key)
      await berth.control('DELETE', `/accounts/${id}`)
    })
  const reset = (servers: boolean) =>
    samples(20, 3, async () => {
      if (servers) await serverOf(berth.url, berth.key)
      await berth.control('POST', '/reset')
    })
  const instance = (servers: boolean) =>
    samples(10, 2, async () => {
      await using own = await startInstance()
      if (servers) await serverOf(own.url, own.key)
    })
  const rows = []
  for (const [what, take] of Object.entries({
    'an account': account,
    'a reset': reset,
    'an instance': instance,
  }))
    rows.push({
      what: `${what} for each test, median`,
      measured: ms(median(await take(false))),
      baseline: `with a server made in it ${ms(median(await take(true)))}`,
    })
  return rows
}

async function serverOf(url: string, key: string): Promise<void> {
  const response = await fetch(`${url}/servers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  })
  if (!response.ok) throw new Error(`no server: ${response.status}`)
}

interface Outcome {
  passed: number
  failed: number
  took: number
}

/** Runs the suite by Bun's test runner in so many processes. */
async function runSuite(berth: Instance, workers: number): Promise<Outcome> {
  using folder = temporaryFolder()
  const tests = JSON.stringify(join(import.meta.dir, 'suite-tests.ts'))
  for (let file = 0; file < FILES; file++) {
    const text = `import { defineTests } from ${tests}\ndefineTests(${file}, ${TESTS_OF_A_FILE})\n`
    writeFileSync(join(folder.path, `isolation-${file}.test.ts`), text)
  }
  let output = ''
  const took = await time(async () => {
    const child = Bun.spawn([process.execPath, 'test', `--parallel=${workers}`, '--timeout', '60000'], {
      cwd: folder.path,
      env: { ...process.env, BERTH_BASE_URL: berth.url, BERTH_ADMIN_TOKEN: berth.adminToken },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    output = await child.stderr.text()
    await child.exited
  })
  const number = (what: string) => Number(new RegExp(`^ *(\\d+) ${what}$`, 'm').exec(output)?.[1] ?? 0)
  const outcome = { passed: number('pass'), failed: number('fail'), took }
  if (outcome.failed > 0 || outcome.passed === 0) console.error(output.slice(-4_000))
  return outcome
}
