import { join } from 'node:path'
import { executable, startInstance, temporaryFolder } from './instance.ts'
import { median, ms, print, time, times } from './measure.ts'
import { compile } from './startup.ts'

const ROUNDS = 15

/** How many commands are printed: the slowest. */
const PRINTED = 8

/** The smallest program: what any command must pay at least. */
const SMALLEST = `console.log('1.0.0')`

/** Commands that change nothing and end by themselves. Those of nouns send one request to an instance that runs. */
const COMMANDS = [
  '--version',
  'help',
  'help servers create',
  'serve --help',
  'run --help',
  'deploy --help',
  'list',
  'env',
  'whoami',
  'guide',
  'completion bash',
  'servers list',
  'tasks list',
  'builds list',
  'projects list',
  'templates list',
  'deployments list',
  'keys list',
  'webhooks list',
  'snapshots list',
  'faults list',
  'accounts list',
  'clock get',
  'scenarios list',
  'events list',
  'deliveries list',
  'inbox list',
  'fixtures list',
  'logs',
]

/** Process start → end of commands that do next to nothing: what each command costs before its own work. */
export async function benchCli(): Promise<void> {
  using folder = temporaryFolder()
  const smallest = await compile(folder.path, 'smallest-command', SMALLEST)
  await using berth = await startInstance(join(folder.path, '.berth'))
  // Without one, those that mean a server refuse.
  await berth.call('POST', '/servers')
  const variables = {
    BERTH_BASE_URL: berth.url,
    BERTH_API_KEY: berth.key,
    BERTH_ADMIN_TOKEN: berth.adminToken,
  }
  const env = { ...process.env, HOME: folder.path, ...variables }
  const run = async (argv: string[]): Promise<void> => {
    const child = Bun.spawn(argv, { env, cwd: folder.path, stdio: ['ignore', 'ignore', 'inherit'] })
    if ((await child.exited) !== 0) throw new Error(`${argv.join(' ')} failed.`)
  }
  const taken = new Map([
    [smallest, [] as number[]],
    ...COMMANDS.map((name) => [name, [] as number[]] as const),
  ])
  // In turns, so that whatever else the machine does falls on all.
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, samples] of taken) {
      const argv = name === smallest ? [smallest] : [executable, ...name.split(' ')]
      const took = await time(() => run(argv))
      if (round >= 0) samples.push(took)
    }
  }
  const base = median(taken.get(smallest) ?? [])
  const slowest = COMMANDS.map((name) => ({ name, took: median(taken.get(name) ?? []) }))
    .sort((a, b) => b.took - a.took)
    .slice(0, PRINTED)
  print(
    `Commands' own start: the slowest ${PRINTED} of ${COMMANDS.length}`,
    slowest.map(({ name, took }) => ({
      what: `berth ${name}`,
      measured: ms(took),
      baseline: `smallest compiled program ${ms(base)}`,
      ratio: times(took / base),
      goal: '≤ 40 ms',
      met: took <= 40,
    })),
  )
}
