import { type Instance, processorTime, readLine, startInstance } from './instance.ts'
import { median, ms, print, quantile, type Row, samples, time, times } from './measure.ts'
import { type RawClient, rawClient } from './raw-client.ts'

const ROUNDS = 10
const PER_ROUND = 100
const COMMANDS = ROUNDS * PER_ROUND

const QUANTILES = [
  { name: 'median', share: 0.5 },
  { name: 'p99', share: 0.99 },
]

/** Milliseconds between two servers. */
const PAUSE_MS = 150

/** An earlier executable of berth to compare with, if one is named. */
const earlier = process.env.BERTH_BASELINE || null

/**
 * exec of `true` over HTTP against a bare spawn; provisioning; fifty servers at once. With BERTH_BASELINE=EXECUTABLE the
 * commands of an earlier berth are measured in turn, and which of the two comes first changes from round to round.
 */
export async function benchExec(): Promise<void> {
  await using berth = await startInstance()
  await using before = earlier ? await startInstance(undefined, [], earlier) : null
  using client = await commandClient(berth)
  using clientBefore = before ? await commandClient(before) : null
  const now: Side = { pid: berth.pid, client, taken: [], processor: 0 }
  const then: Side | null = before &&
    clientBefore && { pid: before.pid, client: clientBefore, taken: [], processor: 0 }
  const sides = then ? [now, then] : [now]
  const bare = () => Bun.spawn(['sh', '-c', 'true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited

  await using plain = await startPlain()
  using plainClient = await rawClient(plain.url, 'none', '/', { command: 'true' })

  const taken = { exec: now.taken, bare: [] as number[], plain: [] as number[] }
  // In turns, so that whatever else the machine does falls on both.
  for (let round = 0; round < ROUNDS; round++) {
    taken.bare.push(...(await samples(PER_ROUND, round === 0 ? 50 : 5, bare)))
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await measureCommands(side, round === 0)
    taken.plain.push(...(await samples(PER_ROUND, round === 0 ? 50 : 5, () => plainClient.send())))
  }
  const rows: Row[] = QUANTILES.flatMap(({ name, share }) => {
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

  if (then !== null) {
    rows.push(
      ...QUANTILES.map(({ name, share }) =>
        against(name, quantile(now.taken, share), quantile(then.taken, share), ms),
      ),
    )
    rows.push(
      against('processor time of berth', now.processor, then.processor, (us) => ms(us / COMMANDS / 1_000)),
    )
  }

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

/** A berth whose commands are measured. */
interface Side {
  readonly pid: number
  readonly client: RawClient
  /** Milliseconds of each command. */
  readonly taken: number[]
  /** Microseconds of processor time that berth's own process has taken for all of them. */
  processor: number
}

async function commandClient(berth: Instance): Promise<RawClient> {
  const { id } = await berth.call('POST', '/servers')
  return rawClient(berth.url, berth.key, `/servers/${id}/exec`, { command: 'true' })
}

async function measureCommands(side: Side, isFirst: boolean): Promise<void> {
  const run = () => side.client.send()
  await samples(isFirst ? 50 : 5, 0, run)
  const began = processorTime(side.pid)
  side.taken.push(...(await samples(PER_ROUND, 0, run)))
  side.processor += processorTime(side.pid) - began
}

const against = (name: string, measured: number, before: number, format: (value: number) => string): Row => ({
  what: `exec of true, against an earlier berth, ${name}`,
  measured: format(measured),
  baseline: `earlier berth ${format(before)}`,
  ratio: times(measured / before),
})

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
