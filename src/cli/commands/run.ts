import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import type { CliSession } from '../session.ts'
import { addServeOptions, givenFlags, type OwnFlag } from './serve.ts'

/** Flags of `run` in addition to the options of `serve`. */
const RUN_FLAGS: readonly OwnFlag[] = [
  { name: 'keep', description: "keep the instance's data directory, with its log, and say where it is" },
  {
    name: 'report',
    value: 'DIR',
    description:
      'write what happened as a page and files (default: berth-report where CI is set, else if the run fails)',
  },
  { name: 'no-report', description: 'write no report' },
  { name: 'junit', value: 'FILE', description: 'write the report for CI systems, in the format of JUnit' },
  {
    name: 'coverage',
    value: 'FILE',
    description: 'write which operations and statuses of the API were reached, as JSON',
  },
  {
    name: 'coverage-min',
    value: 'PERCENT',
    description: 'fail if fewer of the operations of the API had a success',
  },
  {
    name: 'strict',
    description:
      'fail at near misses, undocumented responses, faults that never applied, and waits that timed out',
  },
  { name: 'timeout', value: 'DURATION', description: 'end CMD after this time, and exit with 124' },
  { name: 'leave', description: 'let processes that CMD started outlive it' },
]

/** Descriptions, by name, of options of `serve` with another meaning for `run`. Only flags set them. */
const RUN_DESCRIPTIONS: Readonly<Record<string, string>> = {
  host: 'address to listen on (default 127.0.0.1)',
  port: 'port to listen on (default: any free one)',
  data: 'run on this directory, and keep it (default: a temporary one)',
  ephemeral: 'a temporary directory, which is removed: so it is without --data',
  json: 'print one JSON line on stderr when ready, before CMD starts',
  'project-ports': 'ports of projects and deployments (default: a free block)',
}

const HELP = `
CMD finds the instance by BERTH_BASE_URL, BERTH_API_KEY, BERTH_ADMIN_TOKEN, BERTH_MCP_URL and BERTH_DATA, and this
executable by BERTH_EXECUTABLE. The options are those of "berth serve"; variables and the config file set them too, but for
where it listens and keeps its data: that is a free port, free project ports and a temporary directory unless a flag says
otherwise.

The exit code is CMD's; 128+n where signal n ended it, 127 where it is not found, 126 where it cannot be executed, 124
after --timeout, 1 where berth could not start. An exit code of 0 becomes 1 where --strict or --coverage-min fails the run.

The report of a run has its requests, events, deliveries, transcripts and logs, of all accounts, without secrets.
"berth report DIR" opens it. Runs at the same time may share a directory, or a file of --coverage: they are merged.

Examples:
  berth run -- bun test
  berth run --fixtures shop.yaml --coverage coverage.json -- pytest -x
  berth run --keep -- ./reproduce.sh      look at data and log afterwards
  berth run --strict --report out -- npm test
`

/** Adds `run`. */
export function registerRun(program: Command, session: CliSession): void {
  const command = program
    .command('run')
    .argument('[CMD...]', 'the command and its arguments, behind "--"')
    .usage('[options] -- CMD [ARG...]')
    .summary('run a command beside an instance of its own')
    .description(
      'Starts an instance for one command, runs the command, and removes the instance with all it made.',
    )
    .addHelpText('after', HELP)
  addServeOptions(command, RUN_FLAGS, RUN_DESCRIPTIONS)
  // Options after the command's name belong to the command.
  command.passThroughOptions()
  command.action(async ([name, ...args]: string[]) => {
    if (name === undefined)
      throw new UsageError('What is to run is missing. Put it behind "--": berth run -- bun test')
    const { runBeside } = await import('../run/run.ts')
    session.exitCode = await runBeside(
      { flags: givenFlags(command), command: [name, ...args] },
      session.context,
    )
  })
}
