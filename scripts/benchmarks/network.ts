import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Instance, startInstance, temporaryFolder } from './instance.ts'
import { downloadRate, latency } from './load.ts'
import { median, ms, print, type Row, times } from './measure.ts'

const ROUNDS = 7
const SECONDS = 1
const CONNECTIONS = 32
const MEGABYTES = 20

/** An earlier executable of berth to compare with, if one is named. */
const earlier = process.env.BERTH_BASELINE || null

/** An app with a small response, a large one, and one that reads what it is sent. */
const APP = `
const large = new Uint8Array(${MEGABYTES}e6)
Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, async fetch(request) {
  if (request.method === 'POST') return new Response(String((await request.text()).length))
  return new Response(request.url.endsWith('/large') ? large : 'hello world')
} })`

/** An app that is reached through its server's own network, and what a program of a server reaches outside. */
export async function benchNetwork(): Promise<void> {
  if (Bun.which('wrk') === null) {
    print('The network of servers', [{ what: 'skipped: wrk is not installed (package "wrk")', measured: '' }])
    return
  }
  await benchInbound()
  await benchOutbound()
}

/** With BERTH_BASELINE=EXECUTABLE an earlier berth is measured in turn with this one. */
async function benchInbound(): Promise<void> {
  using folder = temporaryFolder()
  const post = join(folder.path, 'post.lua')
  writeFileSync(post, `wrk.method = "POST"\nwrk.body = string.rep("x", 1000)\n`)
  await using berth = await startInstance(undefined, ['--project-ports', '6500-6549'])
  const url = await publish(berth)
  await using before = earlier
    ? await startInstance(undefined, ['--project-ports', '6550-6599'], earlier)
    : null
  const urlBefore = before ? await publish(before) : null
  const measures: Array<[what: string, higher: boolean, take: (url: string) => Promise<number>]> = [
    ['requests a second, kept-alive connections', true, (to) => wrk([to])],
    ['requests a second, a connection for each', true, (to) => wrk(['-H', 'Connection: close', to])],
    ['requests a second, POST of 1 kB', true, (to) => wrk(['-s', post, to])],
    ['a response, one connection', false, (to) => latency(to, 1_000)],
    [`MB/s, a response of ${MEGABYTES} MB`, true, (to) => downloadRate(`${to}large`)],
  ]
  const rows: Row[] = []
  for (const [what, higher, take] of measures) {
    const now: number[] = []
    const then: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      now.push(await take(url))
      if (urlBefore !== null) then.push(await take(urlBefore))
    }
    const show = (value: number): string => (higher ? value.toFixed(0) : ms(value))
    // Of each round by itself, so that whatever else the machine does falls on both.
    const ratio = median(now.map((value, round) => value / (then[round] ?? Number.NaN)))
    const against = {
      baseline: `earlier berth ${show(median(then))}`,
      ratio: times(ratio),
      goal: higher ? '≥ 0.95 ×' : '≤ 1.05 ×',
      met: higher ? ratio >= 0.95 : ratio <= 1.05,
    }
    rows.push({ what, measured: show(median(now)), ...(urlBefore === null ? {} : against) })
  }
  print(
    `An app through its server's network, ${CONNECTIONS} connections (isolation ${berth.isolation})`,
    rows,
  )
}

async function publish(berth: Instance): Promise<string> {
  const { id } = await berth.call('POST', '/servers', { tier: 'large' })
  await berth.call('PUT', `/servers/${id}/files`, { path: 'index.ts', content: APP })
  const { url } = await berth.call('POST', `/servers/${id}/deployments`)
  return url
}

/** Requests a second of one run of wrk. */
async function wrk(args: string[]): Promise<number> {
  const all = ['wrk', '-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, ...args]
  const output = await Bun.spawn(all, { stdio: ['ignore', 'pipe', 'ignore'] }).stdout.text()
  return Number(/^Requests\/sec: +([\d.]+)$/m.exec(output)?.[1])
}

/** Runs in a network of its own, where nothing of the machine is touched: it makes an interface to a second one. */
async function benchOutbound(): Promise<void> {
  const missing = ['ip', 'unshare', 'nsenter', 'curl'].filter((name) => Bun.which(name) === null)
  if (process.getuid?.() !== 0 || missing.length > 0) {
    const why =
      missing.length > 0 ? `${missing.join(', ')} missing` : 'only root may make the networks for it'
    print('What a server reaches outside', [{ what: `skipped: ${why}`, measured: '' }])
    return
  }
  const script = join(import.meta.dir, 'outbound.ts')
  await Bun.spawn(['unshare', '--net', process.execPath, script], { stdio: ['ignore', 'inherit', 'inherit'] })
    .exited
}
