import { rawClient, startProgram } from './http-clients.ts'
import { earlier, executable, processorTime, startInstance } from './instance.ts'
import { inTurns, median, ms, print, quantile, type Row, ratioOf, samples, time, times } from './measure.ts'

const ROUNDS = 10
const PER_ROUND = 100

/** Milliseconds between two servers, within which the next spare server starts. */
const PAUSE_MS = 150

/** What exec can be at best: HTTP and the command, without a sandbox, a process in it, or a check. */
const PLAIN = `
const server = Bun.serve({ port: 0, async fetch(request) {
  const { command } = await request.json()
  const child = Bun.spawn(['/bin/sh', '-c', command], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return Response.json({ stdout, stderr, exitCode })
} })
console.log(server.port)
`

/** Measures exec of `true` over HTTP against a bare spawn, and how soon a new server has run its first command. */
export async function benchExec(): Promise<void> {
  await benchCommands()
  await benchServers()
}

/** A berth, or a program in its place, that runs commands. */
interface Side extends AsyncDisposable {
  /** Runs `true`. */
  run(): Promise<unknown>
  /** Returns the microseconds of processor time that its own process has taken. */
  processor(): number
}

async function berthSide(program = executable): Promise<Side> {
  const berth = await startInstance(['--ephemeral'], [program])
  const { id } = await berth.call('POST', '/servers')
  const client = await rawClient(berth.url, `/servers/${id}/exec`, berth.key, { command: 'true' })
  return {
    run: () => client.send(),
    processor: () => processorTime(berth.pid),
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]()
      await berth[Symbol.asyncDispose]()
    },
  }
}

async function benchCommands(): Promise<void> {
  await using now = await berthSide()
  await using before = earlier ? await berthSide(earlier) : null
  await using plain = await startProgram(PLAIN)
  using plainClient = await rawClient(plain.url, '/', '', { command: 'true' })
  const bare = () => Bun.spawn(['sh', '-c', 'true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited

  const all: Record<string, number[]> = {}
  const measured = (name: string, run: () => unknown) => async (): Promise<number> => {
    const taken = await samples(PER_ROUND, 5, run)
    all[name] = [...(all[name] ?? []), ...taken]
    return median(taken)
  }
  const began = [now.processor(), before?.processor() ?? 0] as const
  const taken = await inTurns(ROUNDS, 1, {
    bare: measured('bare', bare),
    now: measured('now', now.run),
    plain: measured('plain', () => plainClient.send()),
    before: before && measured('before', before.run),
  })
  const commands = (ROUNDS + 1) * (PER_ROUND + 5)
  const each = (microseconds: number): string =>
    `processor time of its process ${ms(microseconds / commands / 1_000)}`
  const row = (what: string, values: readonly number[]): Row => ({
    what,
    measured: ms(median(values)),
    baseline: `Bun.spawn of sh -c true ${ms(median(taken.bare))}`,
    ratio: times(ratioOf(values, taken.bare)),
  })
  const p99 = (name: string): number => quantile(all[name] ?? [], 0.99)
  const ratio = ratioOf(taken.now, taken.bare)
  print('exec of true over HTTP', [
    { ...row('berth, median', taken.now), goal: '≤ 1.60 ×', met: ratio <= 1.6 },
    {
      what: 'berth, p99',
      measured: ms(p99('now')),
      baseline: `Bun.spawn of sh -c true ${ms(p99('bare'))}`,
      ratio: times(p99('now') / p99('bare')),
    },
    { what: 'berth', measured: each(now.processor() - began[0]) },
    row('a Bun.serve that spawns it in its own process, median', taken.plain),
    ...(before
      ? [
          row('the earlier berth, median', taken.before),
          { what: 'the earlier berth', measured: each(before.processor() - began[1]) },
        ]
      : []),
  ])
}

async function benchServers(): Promise<void> {
  await using berth = await startInstance()
  await using unprepared = await startInstance(['--ephemeral', '--spare-servers', '0'])
  const provision = async ({ call }: typeof berth): Promise<void> => {
    const { id } = await call('POST', '/servers')
    await call('POST', `/servers/${id}/exec`, { command: 'true' })
  }
  const taken = await inTurns(20, 1, {
    prepared: () => time(() => provision(berth)),
    unprepared: () => time(() => provision(unprepared)),
    // Until the next spare server runs.
    pause: () => time(() => Bun.sleep(PAUSE_MS)),
  })
  const afterEachOther = await samples(20, 0, () => provision(berth))
  const fifty = await time(() =>
    Promise.all(Array.from({ length: 50 }, () => berth.call('POST', '/servers'))),
  )
  const prepared = median(taken.prepared)
  print(`New servers (isolation ${berth.isolation})`, [
    {
      what: 'POST /servers → first command done, median',
      measured: ms(prepared),
      baseline: `without a spare server ${ms(median(taken.unprepared))}`,
      goal: '≤ 25 ms',
      met: prepared <= 25,
    },
    { what: 'the same without a pause between them', measured: ms(median(afterEachOther)) },
    {
      what: 'fifty servers at once, all running',
      measured: ms(fifty),
      goal: '≤ 1000 ms',
      met: fifty <= 1000,
    },
  ])
}
