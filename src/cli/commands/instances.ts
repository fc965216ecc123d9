import { type Command, Option } from 'commander'
import { reachLoopbackDirectly } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import { parseDuration } from '../../runtime/duration.ts'
import { CommandError } from '../errors.ts'
import { type ConnectionOptions, findDataFolder } from '../instance.ts'
import type { ListedInstance } from '../instances/registry.ts'
import type { Stopped } from '../instances/stop.ts'
import { ENV_SHELLS, type EnvShell } from '../instances/variables.ts'
import { type Column, table } from '../output.ts'
import { printJson, type Session } from '../session.ts'

const DATA = 'the data folder (default: the nearest .berth) [BERTH_DATA]'

const COLUMNS: Column<ListedInstance>[] = [
  { heading: 'FOLDER', cell: ({ data_dir }) => data_dir },
  { heading: 'URL', cell: ({ base_url }) => base_url },
  { heading: 'PID', cell: ({ pid }) => String(pid), right: true },
  { heading: 'STARTED', cell: ({ started_at }) => started_at },
  { heading: 'BY', cell: ({ started_by }) => started_by },
]

/** Adds `list`, `wait`, `env` and `stop`: what is done with instances that run. */
export function registerInstances(program: Command, session: Session): void {
  registerList(program, session)
  registerWait(program, session)
  registerEnv(program, session)
  registerStop(program, session)
}

function registerList(program: Command, session: Session): void {
  const { stdout, env } = session.terminal
  program
    .command('list')
    .summary('which instances run')
    .description('Lists the instances of this user that run, in whatever folder, oldest first.')
    .option('--json', 'print them as JSON, for programs')
    .action(async (options: { json?: boolean }) => {
      const { listInstances } = await import('../instances/registry.ts')
      const instances = listInstances(env)
      if (options.json) return printJson(session, { instances })
      if (instances.length === 0)
        return stdout.write('No berth runs. Start one with "berth serve", or "berth serve --detach".\n')
      await stdout.write(table(stdout, COLUMNS, instances))
    })
}

function registerWait(program: Command, session: Session): void {
  program
    .command('wait')
    .summary('block until an instance is ready')
    .description(
      'Waits until an instance is ready, its recovery and fixtures included. It may yet have to be started.',
    )
    .option('--timeout <DURATION>', 'how long, such as 500ms, 10s or 2m', '10s')
    .addOption(new Option('--base-url <URL>', 'the instance to wait for [BERTH_BASE_URL]'))
    .option('--data <DIR>', `else: the instance of ${DATA}`)
    .action(async ({ timeout, ...options }: ConnectionOptions & { timeout: string }) => {
      const timeoutMs = duration('--timeout', timeout)
      reachLoopbackDirectly()
      const { waitUntilReady } = await import('../instances/wait.ts')
      const baseUrl = await waitUntilReady(options, session.terminal, timeoutMs)
      await session.terminal.stdout.write(`${baseUrl} is ready.\n`)
    })
}

const ENV_MORE = `
Examples:
  eval "$(berth env)"                          bash, zsh and other POSIX shells
  berth env | source                           fish
  berth env --shell powershell | Invoke-Expression
`

function registerEnv(program: Command, session: Session): void {
  const { stdout, env, cwd } = session.terminal
  program
    .command('env')
    .summary("print the running instance's variables for the shell")
    .description(
      'Prints BERTH_BASE_URL, BERTH_API_KEY, BERTH_ADMIN_TOKEN and BERTH_MCP_URL of the instance that runs on the data folder, for the shell to evaluate.',
    )
    .addOption(
      new Option(
        '--shell <SHELL>',
        'for which shell (default: fish where $SHELL says so, else bash)',
      ).choices(ENV_SHELLS),
    )
    .option('--data <DIR>', DATA)
    .addHelpText('after', ENV_MORE)
    .action(async ({ shell, data }: { shell?: EnvShell; data?: string }) => {
      const { shellText, variablesOfFolder } = await import('../instances/variables.ts')
      const usual = /(?:^|\/)fish$/.test(env.SHELL ?? '') ? 'fish' : 'bash'
      await stdout.write(shellText(variablesOfFolder(findDataFolder(data, env, cwd)), shell ?? usual))
    })
}

function registerStop(program: Command, session: Session): void {
  const { stdout, stderr, env, cwd } = session.terminal
  program
    .command('stop')
    .summary('end an instance that runs')
    .description('Ends the instance that runs on the data folder in order, and returns when it is gone.')
    .option('--data <DIR>', DATA)
    .option('--all', 'all instances of this user, whatever their folder')
    .option('--timeout <DURATION>', 'how long it may take, such as 500ms, 10s or 2m', '10s')
    .option('--force', 'kill what has not ended by then')
    .option('--json', 'print what was stopped as JSON, for programs')
    .action(
      async (options: { data?: string; all?: boolean; timeout: string; force?: boolean; json?: boolean }) => {
        if (options.all && options.data !== undefined)
          throw new UsageError('--all means every folder: leave out --data.')
        const how = { timeoutMs: duration('--timeout', options.timeout), force: options.force ?? false, env }
        const [{ stopInstance }, { listInstances }] = await Promise.all([
          import('../instances/stop.ts'),
          import('../instances/registry.ts'),
        ])
        const folders = options.all
          ? listInstances(env).map(({ data_dir }) => data_dir)
          : [findDataFolder(options.data, env, cwd)]
        const outcomes = await Promise.allSettled(folders.map((folder) => stopInstance(folder, how)))
        const stopped = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
        if (options.json) await printJson(session, { stopped })
        else await stdout.write(stopped.map(stoppedText).join('') || (options.all ? 'No berth runs.\n' : ''))
        const failures = outcomes.flatMap((outcome) =>
          outcome.status === 'rejected' ? [outcome.reason] : [],
        )
        // The last one is told as the failure of the command.
        for (const failure of failures.slice(0, -1)) {
          if (!(failure instanceof CommandError)) throw failure
          await stderr.write(`berth: ${failure.message}\n`)
        }
        if (failures.length > 0) throw failures.at(-1)
      },
    )
}

const stoppedText = ({ data_dir, pid, killed }: Stopped): string =>
  `${killed ? 'Killed' : 'Stopped'} the berth on ${data_dir} (pid ${pid}).\n`

function duration(flag: string, text: string): number {
  const ms = parseDuration(text)
  if (ms !== null) return ms
  throw new UsageError(`${flag}: expected a duration such as 500ms, 10s or 2m, got ${JSON.stringify(text)}.`)
}
