import { type Instance, readLine, startInstance } from './instance.ts'
import { median, print, times } from './measure.ts'

const ROUNDS = 5
const SECONDS = 2
const CONNECTIONS = 32

/** An earlier executable of berth to compare with, if one is named. */
const earlier = process.env.BERTH_BASELINE || null

/**
 * Measures `GET /servers` with ten servers against a bare Bun.serve that stringifies the same body for each request. The
 * load comes from `wrk` with one thread, which takes less processor than what it measures. With BERTH_BASELINE=EXECUTABLE
 * an earlier berth is measured in turn with this one.
 */
export async function benchThroughput(): Promise<void> {
  const title = `GET /servers, ten servers, ${CONNECTIONS} connections (wrk -t1)`
  if (Bun.which('wrk') === null) {
    print(title, [{ what: 'skipped: wrk is not installed (package "wrk")', measured: '' }])
    return
  }
  await using berth = await withTenServers()
  await using before = earlier ? await withTenServers(earlier) : null
  const list = JSON.stringify(await berth.call('GET', '/servers'))

  const program = `const list = ${list}
    const headers = { 'content-type': 'application/json' }
    const server = Bun.serve({ port: 0, fetch: () => new Response(JSON.stringify(list), { headers }) })
    console.log(server.port)`
  const bare = Bun.spawn([process.execPath, '-e', program], { stdin: 'ignore', stdout: 'pipe' })
  const bareUrl = `http://127.0.0.1:${await readLine(bare.stdout)}/`

  const rates = { berth: [] as number[], bare: [] as number[], earlier: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    rates.bare.push(await requestRate(bareUrl, berth.key))
    rates.berth.push(await requestRate(`${berth.url}/servers`, berth.key))
    if (before) rates.earlier.push(await requestRate(`${before.url}/servers`, before.key))
  }
  bare.kill()
  await bare.exited

  const [measured, baseline] = [median(rates.berth), median(rates.bare)]
  print(title, [
    {
      what: 'requests a second',
      measured: measured.toFixed(0),
      baseline: `bare Bun.serve, same body stringified: ${baseline.toFixed(0)}`,
      ratio: times(measured / baseline),
      goal: '≥ 0.40 ×',
      met: measured / baseline >= 0.4,
    },
    ...(before
      ? [
          {
            what: 'against an earlier berth',
            measured: measured.toFixed(0),
            baseline: `earlier berth ${median(rates.earlier).toFixed(0)}`,
            ratio: times(measured / median(rates.earlier)),
            goal: '≥ 0.95 ×',
            met: measured / median(rates.earlier) >= 0.95,
          },
        ]
      : []),
  ])
}

async function withTenServers(program?: string): Promise<Instance> {
  const instance = await startInstance(undefined, [], program)
  for (let n = 0; n < 10; n++) await instance.call('POST', '/servers')
  return instance
}

/** Requests a second that `wrk` counts. @throws Error if a response was a refusal or a connection failed */
async function requestRate(url: string, key: string): Promise<number> {
  const load = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-H', `Authorization: Bearer ${key}`, url]
  const child = Bun.spawn(['wrk', ...load], { stdin: 'ignore', stdout: 'pipe' })
  const report = await new Response(child.stdout).text()
  if (/Non-2xx|Socket errors/.test(report)) throw new Error(`${url}: ${report}`)
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(report)?.[1])
}
