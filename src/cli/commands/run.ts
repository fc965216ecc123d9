import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import type { CliSession } from '../session.ts'
import { RUN_DESCRIPTIONS, RUN_FLAGS } from './run-flags.ts'
import { addServeOptions, givenFlags } from './serve-options.ts'

const HELP = `
CMD finds the instance by BERTH_BASE_URL, BERTH_API_KEY, BERTH_ADMIN_TOKEN, BERTH_MCP_URL and BERTH_DATA. The options are
those of "berth serve"; variables and the config file set them too, but for where it listens and keeps its data: that is
a free port, free project ports and a temporary directory unless a flag says otherwise.

The exit code is CMD's; 128+n where signal n ended it, 127 where it is not found, 126 where it cannot be executed, 1 where
berth could not start.

Examples:
  berth run -- bun test
  berth run --fixtures shop.yaml --coverage coverage.json -- pytest -x
  berth run --keep -- ./reproduce.sh      look at data and log afterwards
`

/** Adds `run` for its help and its usage errors. `parseRun` handles correct command lines. */
export function registerRun(program: Command, session: CliSession): void {
  const run = program
    .command('run')
    .argument('[CMD...]', 'the command and its arguments, behind "--"')
    .usage('[options] -- CMD [ARG...]')
    .summary('run a command beside an instance of its own')
    .description(
      'Starts an instance for one command, runs the command, and removes the instance with all it made.',
    )
    .addHelpText('after', HELP)
  addServeOptions(run, RUN_FLAGS, RUN_DESCRIPTIONS)
  // Options after the command's name belong to the command.
  run.passThroughOptions()
  run.action(async ([name, ...args]: string[]) => {
    if (name === undefined)
      throw new UsageError('What is to run is missing. Put it behind "--": berth run -- bun test')
    const request = { flags: givenFlags(run), command: [name, ...args] as const }
    session.exitCode = await (await import('../run/run.ts')).run(request, session.context)
  })
}
