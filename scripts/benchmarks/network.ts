import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Instance, processorTime, startInstance, temporaryFolder } from './instance.ts'
import { download, latency } from './load.ts'
import { median, ms, print, type Row, times } from './measure.ts'

const ROUNDS = 7
const SECONDS = 1
const CONNECTIONS = 32
const MEGABYTES = 20
const LATENCY_REQUESTS = 1_000

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

/** What a round of load gives: the rate or the milliseconds, and how much berth did for it. */
interface Taken {
  readonly value: number
  /** Requests that berth passed on, or megabytes. */
  readonly done: number
}

/** A load, and what its figure means. */
interface Load {
  readonly what: string
  readonly isRate: boolean
  /** What a round does many of, in the singular. */
  readonly each: 'request' | 'MB'
  take(url: string): Promise<Taken>
}

/** A berth with the app, and its figures of one load by round. */
interface Side {
  readonly berth: Instance
  readonly url: string
  readonly values: number[]
  /** Microseconds of berth's processor time for each request or megabyte. */
  readonly processor: number[]
}

/**
 * With BERTH_BASELINE=EXECUTABLE an earlier berth is measured in turn with this one, and which of the two comes first
 * changes from round to round. The processor time tells them apart even if other programs are busy.
 */
async function benchInbound(): Promise<void> {
  using folder = temporaryFolder()
  const post = join(folder.path, 'post.lua')
  writeFileSync(post, `wrk.method = "POST"\nwrk.body = string.rep("x", 1000)\n`)
  await using berth = await startInstance(undefined, ['--project-ports', '6500-6549'])
  await using before = earlier
    ? await startInstance(undefined, ['--project-ports', '6550-6599'], earlier)
    : null
  const url = await publish(berth)
  const urlBefore = before ? await publish(before) : null
  const loads: Load[] = [
    {
      what: 'requests a second, kept-alive connections',
      isRate: true,
      each: 'request',
      take: (to) => wrk([to]),
    },
    {
      what: 'requests a second, a connection for each',
      isRate: true,
      each: 'request',
      take: (to) => wrk(['-H', 'Connection: close', to]),
    },
    {
      what: 'requests a second, POST of 1 kB',
      isRate: true,
      each: 'request',
      take: (to) => wrk(['-s', post, to]),
    },
    {
      what: 'a response, one connection',
      isRate: false,
      each: 'request',
      take: async (to) => ({ value: await latency(to, LATENCY_REQUESTS), done: LATENCY_REQUESTS * 1.1 }),
    },
    {
      what: `MB/s, responses of ${MEGABYTES} MB, one connection`,
      isRate: true,
      each: 'MB',
      take: async (to) => {
        const { megabytes, seconds } = await download(`${to}large`, SECONDS)
        return { value: megabytes / seconds, done: megabytes }
      },
    },
  ]
  const rows: Row[] = []
  for (const load of loads) {
    const now: Side = { berth, url, values: [], processor: [] }
    const then: Side | null =
      before && urlBefore ? { berth: before, url: urlBefore, values: [], processor: [] } : null
    const sides = then === null ? [now] : [now, then]
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) await measure(load, side)
    }
    rows.push(...rowsOf(load, now, then))
  }
  print(
    `An app through its server's network, ${CONNECTIONS} connections (isolation ${berth.isolation})`,
    rows,
  )
}

async function measure(load: Load, { berth, url, values, processor }: Side): Promise<void> {
  const before = processorTime(berth.pid)
  const { value, done } = await load.take(url)
  values.push(value)
  processor.push((processorTime(berth.pid) - before) / done)
}

function rowsOf({ what, isRate, each }: Load, now: Side, then: Side | null): Row[] {
  const show = (value: number): string => (isRate ? value.toFixed(0) : ms(value))
  const showTime = (value: number): string => `${value.toFixed(1)} µs`
  return [
    compare(what, now.values, then?.values ?? null, show, isRate),
    compare(`  berth's processor time for each ${each}`, now.processor, then?.processor ?? null, showTime),
  ]
}

/** @param isRate whether more is better; undefined if there is no goal */
function compare(
  what: string,
  now: readonly number[],
  then: readonly number[] | null,
  show: (value: number) => string,
  isRate?: boolean,
): Row {
  const row = { what, measured: show(median(now)) }
  if (then === null) return row
  // Of each round by itself, so that whatever else the machine does falls on both.
  const ratio = median(now.map((value, round) => value / (then[round] ?? Number.NaN)))
  const against = { ...row, baseline: `earlier berth ${show(median(then))}`, ratio: times(ratio) }
  if (isRate === undefined) return against
  return isRate
    ? { ...against, goal: '≥ 0.95 ×', met: ratio >= 0.95 }
    : { ...against, goal: '≤ 1.05 ×', met: ratio <= 1.05 }
}

async function publish(berth: Instance): Promise<string> {
  const { id } = await berth.call('POST', '/servers', { tier: 'large' })
  await berth.call('PUT', `/servers/${id}/files`, { path: 'index.ts', content: APP })
  const { url } = await berth.call('POST', `/servers/${id}/deployments`)
  return url
}

/** The requests, and those a second, of one run of wrk. */
async function wrk(args: string[]): Promise<Taken> {
  const all = ['wrk', '-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, ...args]
  const output = await Bun.spawn(all, { stdio: ['ignore', 'pipe', 'ignore'] }).stdout.text()
  const value = Number(/^Requests\/sec: +([\d.]+)$/m.exec(output)?.[1])
  return { value, done: Number(/^ +(\d+) requests in /m.exec(output)?.[1]) }
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
