import { readLine, startInstance } from './instance.ts'
import { median, ms, print, quantile, samples, time, times } from './measure.ts'
import { rawClient } from './raw-client.ts'

const ROUNDS = 10
const PER_ROUND = 100

/** Milliseconds between two servers. */
const PAUSE_MS = 150

/** exec of `true` over HTTP against a bare spawn; provisioning; fifty servers at once. */
export async function benchExec(): Promise<void> {
  await using berth = await startInstance()
  const { id } = await berth.call('POST', '/servers')
  using client = await rawClient(berth.url, berth.key, `/servers/${id}/exec`, { command: 'true' })
  const exec = () => client.send()
  const bare = () => Bun.spawn(['sh', '-c', 'true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited

  await using plain = await startPlain()
  using plainClient = await rawClient(plain.url, 'none', '/', { command: 'true' })

  const taken = { exec: [] as number[], bare: [] as number[], plain: [] as number[] }
  // In turns, so that whatever else the machine does falls on both.
  for (let round = 0; round < ROUNDS; round++) {
    taken.bare.push(...(await samples(PER_ROUND, round === 0 ? 50 : 5, bare)))
    taken.exec.push(...(await samples(PER_ROUND, round === 0 ? 50 : 5, exec)))
    taken.plain.push(...(await samples(PER_ROUND, round === 0 ? 50 : 5, () => plainClient.send())))
  }
  const rows = [
    { name: 'median', share: 0.5 },
    { name: 'p99', share: 0.99 },
  ].flatMap(({ name, share }) => {
    const measured = quantile(taken.exec, share)
    const baseline = quantile(taken.bare, share)
    const plainly = quantile(taken.plain, share)
    return [
      {
        what: `exec of true over HTTP, ${name}`,
        measured: ms(measured),
        baseline: `Bun.spawn of sh -c true ${ms(baseline)}`,
        ratio: times(measured / baseline),
        goal: '≤ 1.60 ×',
        met: measured / baseline <= 1.6,
      },
      {
        what: `a Bun.serve that spawns it in its own process, ${name}`,
        measured: ms(plainly),
        ratio: times(plainly / baseline),
      },
    ]
  })

  const made: string[] = []
  const provision = async () => {
    const server = await berth.call('POST', '/servers')
    made.push(server.id)
    await berth.call('POST', `/servers/${server.id}/exec`, { command: 'true' })
  }
  const provisioning: number[] = []
  for (let n = 0; n < 20; n++) {
    provisioning.push(await time(provision))
    // Until the next spare server runs.
    await Bun.sleep(PAUSE_MS)
  }
  const afterEachOther = median(await samples(20, 0, provision))
  const fifty = await time(async () => {
    const servers = await Promise.all(Array.from({ length: 50 }, () => berth.call('POST', '/servers')))
    made.push(...servers.map((server: { id: string }) => server.id))
  })
  for (const server of made) await berth.call('DELETE', `/servers/${server}`)

  print(`Commands (isolation ${berth.isolation})`, [
    ...rows,
    {
      what: 'POST /servers → first command done, median',
      measured: ms(median(provisioning)),
      goal: '≤ 25 ms',
      met: median(provisioning) <= 25,
    },
    { what: 'the same without a pause between them', measured: ms(afterEachOther) },
    {
      what: 'fifty servers at once, all running',
      measured: ms(fifty),
      goal: '≤ 1000 ms',
      met: fifty <= 1000,
    },
  ])
}

/** What exec can be at best: HTTP and the command, without a sandbox, an agent in it, or a check. */
const PLAIN = `
const server = Bun.serve({ port: 0, async fetch(request) {
  const { command } = await request.json()
  const child = Bun.spawn(['/bin/sh', '-c', command], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return Response.json({ stdout, stderr, exitCode })
} })
console.log(server.port)
`

async function startPlain(): Promise<{ url: string } & AsyncDisposable> {
  const child = Bun.spawn([process.execPath, '-e', PLAIN], { stdio: ['ignore', 'pipe', 'inherit'] })
  return {
    url: `http://127.0.0.1:${await readLine(child.stdout)}`,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}
