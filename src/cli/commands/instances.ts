import { sep } from 'node:path'
import { UsageError } from '../../errors.ts'
import { isReturnPath } from '../../http/return-path.ts'
import { parseDuration } from '../../runtime/duration.ts'
import { reachLoopbackDirectly } from '../../runtime/process-environment.ts'
import { action, rows } from '../command.ts'
import { CommandError } from '../errors.ts'
import { findDataDirectory } from '../find-instance.ts'
import type { ListedInstance } from '../instances/registry.ts'
import type { StoppedInstance } from '../instances/stop.ts'
import { ENV_SHELLS } from '../instances/variables.ts'
import { choiceOption, flag, textOption } from '../options.ts'
import { count } from '../output.ts'
import { isInteractive, type ProcessContext } from '../process-context.ts'
import { YES } from '../runner.ts'
import { showWhile } from '../status-line.ts'
import { type Column, table } from '../table.ts'

const DATA = 'the data directory (default: the nearest .berth) [BERTH_DATA]'

/** Default of `--timeout`. */
const TIMEOUT = '10s'

const COLUMNS: readonly Column<ListedInstance>[] = [
  { heading: 'DIRECTORY', cell: ({ data_dir }) => data_dir },
  { heading: 'URL', cell: ({ base_url }) => base_url },
  { heading: 'PID', cell: ({ pid }) => String(pid), right: true },
  { heading: 'STARTED', cell: ({ started_at }) => started_at, minor: 1 },
  { heading: 'BY', cell: ({ started_by }) => started_by, minor: 2 },
]

/** `berth list` */
export const listCommand = action({
  usage: 'list',
  summary: 'which instances run',
  description: 'Lists the instances of this user that run, in whatever directory, oldest first.',
  access: 'none',
  json: 'print them as JSON, for programs',
  async run({ session, print }) {
    const { listInstances } = await import('../instances/registry.ts')
    const none = 'No berth runs. Start one with "berth serve", or "berth serve --detach".\n'
    await print({ instances: listInstances(session.context.env) }, rows('instances', COLUMNS, none))
  },
})

/** `berth wait` */
export const wait = action({
  usage: 'wait',
  summary: 'block until an instance is ready',
  description:
    'Waits until an instance is ready, its recovery and fixtures included. It may yet have to be started.',
  access: 'none',
  json: null,
  options: {
    timeout: textOption('DURATION', `how long, such as 500ms, 10s or 2m (default ${TIMEOUT})`),
    baseUrl: textOption('URL', 'the instance to wait for [BERTH_BASE_URL]'),
    data: textOption('DIR', `else: the instance of ${DATA}`),
  },
  async run({ session: { context }, options: { timeout = TIMEOUT, ...options } }) {
    const timeoutMs = durationOf('--timeout', timeout)
    reachLoopbackDirectly()
    const { waitUntilReady } = await import('../instances/wait.ts')
    const baseUrl = await waitUntilReady(options, context, timeoutMs)
    await context.stdout.write(`${baseUrl} is ready.\n`)
  },
})

/** `berth env` */
export const env = action({
  usage: 'env',
  summary: "print the running instance's variables for the shell",
  description:
    'Prints BERTH_BASE_URL, BERTH_API_KEY, BERTH_ADMIN_TOKEN and BERTH_MCP_URL of the instance that runs on the data directory, for the shell to evaluate.',
  access: 'none',
  json: null,
  options: {
    shell: choiceOption(
      'SHELL',
      'for which shell (default: fish where $SHELL says so, else bash)',
      ENV_SHELLS,
    ),
    data: textOption('DIR', DATA),
  },
  help: `
Examples:
  eval "$(berth env)"                          bash, zsh and other POSIX shells
  berth env | source                           fish
  berth env --shell powershell | Invoke-Expression
`,
  async run({ session: { context }, options: { shell, data } }) {
    const { shellText, variablesOfDirectory } = await import('../instances/variables.ts')
    const usual = /(?:^|\/)fish$/.test(context.env.SHELL ?? '') ? 'fish' : 'bash'
    const variables = variablesOfDirectory(findDataDirectory(data, context.env, context.cwd))
    await context.stdout.write(shellText(variables, shell ?? usual))
  },
})

/** `berth stop` */
export const stop = action({
  usage: 'stop',
  summary: 'end an instance that runs',
  description: 'Ends the instance that runs on the data directory in order, and returns when it is gone.',
  access: 'none',
  json: 'print what was stopped as JSON, for programs',
  options: {
    data: textOption('DIR', DATA),
    all: flag('all instances of this user, also those of other directories, once you agree'),
    yes: YES,
    timeout: textOption('DURATION', `how long it may take, such as 500ms, 10s or 2m (default ${TIMEOUT})`),
    force: flag('kill what has not ended by then'),
  },
  help: `
--all reaches every instance that "berth list" shows: also those that other terminals, tests and
tools of yours use. On a terminal it lists them and asks. In a script it needs --yes as soon as one
is outside of the working directory.
`,
  async run({ session: { context }, options, print }) {
    const { data, all, yes, timeout = TIMEOUT, force = false } = options
    if (all && data !== undefined) throw new UsageError('--all means every directory: leave out --data.')
    const { env, cwd, stderr } = context
    const how = { timeoutMs: durationOf('--timeout', timeout), force, env }
    const [{ stopInstance }, { listInstances }] = await Promise.all([
      import('../instances/stop.ts'),
      import('../instances/registry.ts'),
    ])
    const instances = all ? listInstances(env) : []
    if (all && !yes) await agreeToStop(instances, context)
    const directories = all ? instances.map(({ data_dir }) => data_dir) : [findDataDirectory(data, env, cwd)]
    const outcomes = await showWhile(stderr, `end ${count(directories.length, 'instance')}`, () =>
      Promise.allSettled(directories.map((directory) => stopInstance(directory, how))),
    )
    const stopped = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    await print({ stopped }, () => stopped.map(stoppedText).join('') || (all ? 'No berth runs.\n' : ''))
    const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    // The last one is thrown as the failure of the command.
    for (const failure of failures.slice(0, -1)) {
      if (!(failure instanceof CommandError)) throw failure
      await stderr.write(`berth: ${failure.message}\n`)
    }
    if (failures.length > 0) throw failures.at(-1)
  },
})

/**
 * Asks a person whether all these instances are meant. Asks nobody if all of them are in the working directory.
 *
 * @throws CommandError if the person does not agree, or cannot be asked
 */
async function agreeToStop(instances: readonly ListedInstance[], context: ProcessContext): Promise<void> {
  const isHere = ({ data_dir }: ListedInstance): boolean => data_dir.startsWith(`${context.cwd}${sep}`)
  const elsewhere = instances.filter((one) => !isHere(one))
  if (elsewhere.length === 0) return
  const { askYes } = await import('../confirm.ts')
  if (!isInteractive(context)) {
    const named = elsewhere.map(({ data_dir, pid }) => `  ${data_dir} (pid ${pid})\n`).join('')
    throw new CommandError(
      `--all also reaches ${count(elsewhere.length, 'instance')} outside of the working directory:\n${named}Add --yes if they are meant. "berth stop" ends the one of this directory.`,
    )
  }
  await context.stderr.write(table(context.stderr, COLUMNS, instances, { wide: true }))
  if (!(await askYes(`${count(instances.length, 'instance')} will stop. Go on?`, context)))
    throw new CommandError('Nothing was stopped.')
}

const stoppedText = ({ data_dir, pid, killed }: StoppedInstance): string =>
  `${killed ? 'Killed' : 'Stopped'} the berth on ${data_dir} (pid ${pid}).\n`

function durationOf(flag: string, given: string): number {
  const ms = parseDuration(given)
  if (ms !== null) return ms
  throw new UsageError(`${flag}: expected a duration such as 500ms, 10s or 2m, got ${JSON.stringify(given)}.`)
}

/** `berth open` */
export const open = action({
  usage: 'open',
  summary: 'open the pages of an instance in the browser, signed in',
  description: 'Makes a link that signs a browser in, once, and opens it. Without a browser it is printed.',
  access: 'control',
  options: {
    account: textOption('ACCOUNT', 'the account to sign in (default: the first)'),
    page: textOption('PATH', 'the page to open (default /, the dashboard)'),
    print: flag('print the link, and open nothing'),
  },
  help: `
The link signs in the browser that opens it first, within five minutes. Anyone who has it can sign in with it.

Examples:
  berth open                        the pages of the running instance
  berth open --page /docs           another of its pages
  berth open --print                the link alone, for a browser elsewhere
`,
  async run({ session: { context }, options: { account, page, print: onlyPrint }, connect, idOf, print }) {
    if (page !== undefined && !isReturnPath(page))
      throw new UsageError(
        `Expected a path of the instance, such as /docs, in --page, got ${JSON.stringify(page)}.`,
      )
    const client = await connect()
    const body = { account_id: await idOf('ACCOUNT', account), return_to: page }
    await print(await client.call('control.signInLinks.create', { body }), async ({ url }) => {
      if (onlyPrint) return `${url}\n`
      const { openInBrowser } = await import('../browser.ts')
      if (await openInBrowser(url, context))
        return `Opened ${new URL(url).origin} in the browser. If none appears: berth open --print\n`
      await context.stderr.write('berth: no browser was found here. Open this within five minutes:\n')
      return `${url}\n`
    })
  },
})
