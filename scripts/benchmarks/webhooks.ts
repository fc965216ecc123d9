import { readFileSync } from 'node:fs'
import { type Instance, startInstance } from './instance.ts'
import { ms, print, quantile, times } from './measure.ts'

const LATENCY_EVENTS = 300
const EVENTS = 1_000
const WEBHOOKS = 10

/** Requests that emit events at the same time. */
const EMITTERS = 8

/** How soon, how fast and how evenly events reach webhooks. */
export async function benchWebhooks(): Promise<void> {
  const latency = await benchLatency()
  const throughput = await benchThroughput()
  const alone = await timeOf(kinds(10, 'quick'))
  const disturbed = await timeOf([...kinds(10, 'quick'), ...kinds(5, 'dead'), ...kinds(5, 'silent')])
  print(`Webhooks, receivers on loopback`, [
    {
      what: `an event is emitted → the first byte of its delivery, p50 of ${LATENCY_EVENTS}`,
      measured: ms(quantile(latency, 0.5)),
      goal: '≤ 10 ms',
      met: quantile(latency, 0.5) <= 10,
    },
    {
      what: 'the same, p99',
      measured: ms(quantile(latency, 0.99)),
      goal: '≤ 50 ms',
      met: quantile(latency, 0.99) <= 50,
    },
    {
      what: `deliveries a second, ${EVENTS} events to ${WEBHOOKS} webhooks`,
      measured: throughput.rate.toFixed(0),
      goal: '≥ 1000',
      met: throughput.rate >= 1_000,
    },
    {
      what: 'memory at its highest meanwhile, resident',
      measured: `${(throughput.peak / 1e6).toFixed(1)} MB`,
      baseline: `before: ${(throughput.before / 1e6).toFixed(1)} MB`,
      goal: '≤ 150 MB',
      met: throughput.peak <= 150e6,
    },
    {
      what: `${EVENTS} events to 10 webhooks, beside 5 whose receiver is dead and 5 whose never answers`,
      measured: ms(disturbed),
      baseline: `without these: ${ms(alone)}`,
      ratio: times(disturbed / alone),
      goal: '≤ 1.20 ×',
      met: disturbed / alone <= 1.2,
    },
  ])
}

/** A receiver, and how many requests it has got. */
interface Target extends AsyncDisposable {
  url: string
  count: number
  onRequest: () => void
}

/** What becomes of a request: it is answered, refused at the port, or left without an answer. */
type Kind = 'quick' | 'dead' | 'silent'

const kinds = (count: number, kind: Kind): Kind[] => Array(count).fill(kind)

function target(kind: Kind): Target {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      self.count += 1
      self.onRequest()
      await request.text()
      return kind === 'silent' ? new Promise<Response>(() => {}) : new Response('ok')
    },
  })
  const self: Target = {
    url: `http://127.0.0.1:${server.port}/`,
    count: 0,
    onRequest: () => {},
    [Symbol.asyncDispose]: () => server.stop(true),
  }
  if (kind === 'dead') server.stop(true)
  return self
}

/** Emits so many events; resolves when berth has answered all. */
async function emit(berth: Instance, count: number): Promise<void> {
  let left = count
  const emitter = async () => {
    while (left-- > 0) await berth.control('POST', '/events', { event: 'tuning.started' })
  }
  await Promise.all(Array.from({ length: EMITTERS }, emitter))
}

async function benchLatency(): Promise<number[]> {
  await using berth = await startInstance(undefined, ['--allow-local-webhooks'])
  await using receiver = target('quick')
  await berth.call('POST', '/webhooks', { url: receiver.url })
  const taken: number[] = []
  for (let n = 0; n < LATENCY_EVENTS + 20; n++) {
    const { promise: came, resolve } = Promise.withResolvers<void>()
    receiver.onRequest = resolve
    // From before the request that emits it: the commit lies in between, so that this is an upper bound.
    const started = performance.now()
    const emitted = berth.control('POST', '/events', { event: 'tuning.started' })
    await came
    if (n >= 20) taken.push(performance.now() - started)
    await emitted
  }
  return taken
}

async function benchThroughput(): Promise<{ rate: number; before: number; peak: number }> {
  await using berth = await startInstance(undefined, ['--allow-local-webhooks'])
  const before = memory(berth.pid, 'VmRSS')
  const took = await deliverAll(berth, kinds(WEBHOOKS, 'quick'))
  return { rate: (EVENTS * WEBHOOKS) / (took / 1_000), before, peak: memory(berth.pid, 'VmHWM') }
}

async function timeOf(wanted: Kind[]): Promise<number> {
  await using berth = await startInstance(undefined, ['--allow-local-webhooks'])
  const took = await deliverAll(berth, wanted)
  return took
}

/** Milliseconds from the first event until the receivers that answer have got all. */
async function deliverAll(berth: Instance, wanted: Kind[]): Promise<number> {
  const targets = wanted.map(target)
  for (const { url } of targets) await berth.call('POST', '/webhooks', { url })
  const quick = targets.filter((_, at) => wanted[at] === 'quick')
  const { promise: all, resolve } = Promise.withResolvers<void>()
  for (const one of quick) {
    one.onRequest = () => {
      if (quick.every(({ count }) => count >= EVENTS)) resolve()
    }
  }
  const started = performance.now()
  await Promise.all([emit(berth, EVENTS), all])
  const took = performance.now() - started
  for (const one of targets) await one[Symbol.asyncDispose]()
  return took
}

function memory(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1_024
}
