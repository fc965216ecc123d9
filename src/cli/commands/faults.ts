import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { UsageError } from '../../errors.ts'
import { parseDuration } from '../../runtime/duration.ts'
import type { Fault } from '../../testing/api/faults.ts'
import { SERVER_FAULT_KINDS } from '../../testing/api/server-fault-read.ts'
import type { ShownFault } from '../../testing/api/server-faults.ts'
import { count } from '../format.ts'
import type { ConnectionOptions } from '../instance.ts'
import { table } from '../output.ts'
import { path } from '../path.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
}

interface AddOptions extends Options {
  operation?: string
  method?: string
  path?: string
  account?: string
  error?: number
  code?: string
  message?: string
  delay?: number
  disconnect?: boolean
  backendFail?: boolean
  times?: number
  after?: number
  probability?: number
  seed?: number
}

interface ServerOptions extends Options {
  for?: number
  delay?: number
  times?: number
}

const MORE_ADD = `
Which requests it is for can be narrowed down in several ways at once; without any it is for all.
Of several faults all delays apply, and then the first other effect.

Examples:
  berth faults add --operation exec.run --error 502 --times 2 --after 1
  berth faults add --operation tasks.create --error 402
  berth faults add --path '/servers/*/files' --delay 500ms
  berth faults add --error 503 --probability 0.3 --seed 7
  berth faults add --operation projects.init --backend-fail --times 1
`

const MORE_SERVER = `
  crash      all its processes are killed: it sleeps; the next command wakes it
  oom        a process runs out of memory; with --times the next commands do
  disk_full  its storage is full: no file can grow
  hang       its processes stand still: commands do not end, timeouts come
  slow_exec  commands wait for --delay before they begin

Without a kind it lists those that last. A stop of the server ends them all.

Examples:
  berth faults server srv_… crash
  berth faults server srv_… slow_exec --delay 2s --times 3
  berth faults server srv_… hang --for 5s
`

/** Adds `faults` and what can be done with them. */
export function registerFaults(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const faults = program
    .command('faults')
    .helpCommand(false)
    .summary('have requests fail, wait or be cut off, and servers crash')
    .description(
      'Has requests fail, wait or be cut off, and things go wrong inside servers. Plain "berth faults" lists what is set.',
    )
  const add = (usage: string, description: string) =>
    withControl(withJson(faults.command(usage).description(description)))

  add('list', 'list the faults of requests, with how often each struck').action(async (options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<{ faults: Fault[] }>('GET', '/_berth/faults')
    if (options.json) return printJson(session, answer)
    if (answer.faults.length === 0) return stdout.write('No faults. Set one with "berth faults add".\n')
    const { FAULT_COLUMNS } = await import('../faults/show.ts')
    await stdout.write(table(stdout, FAULT_COLUMNS, answer.faults))
  })

  withEffects(withMatches(add('add', 'set a fault'))).action(async (options: AddOptions) => {
    const body = { match: matchOf(options), effect: effectOf(options), ...whenOf(options) }
    const client = await connectControl(session, options)
    const made = await client.request<Fault>('POST', '/_berth/faults', { body })
    if (options.json) return printJson(session, made)
    const { effectText, matchText } = await import('../faults/show.ts')
    const seed = made.probability === 1 ? '' : `, seed ${made.seed}`
    await stdout.write(`Set ${made.id} (${matchText(made.match)}: ${effectText(made.effect)}${seed}).\n`)
  })

  add('rm <FAULT>', 'remove a fault')
    .alias('delete')
    .action(async (id: string, options: Options) => {
      const client = await connectControl(session, options)
      const gone = await client.request<Fault>('DELETE', path`/_berth/faults/${id}`)
      if (options.json) return printJson(session, gone)
      await stdout.write(`Removed ${gone.id}; it struck ${gone.hits} of ${count(gone.matched, 'request')}.\n`)
    })

  add('clear', 'remove all faults of requests').action(async (options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<{ deleted: number }>('DELETE', '/_berth/faults')
    if (options.json) return printJson(session, answer)
    await stdout.write(`Removed ${count(answer.deleted, 'fault')}.\n`)
  })

  add('server <SERVER>', 'have something go wrong inside a server')
    .addArgument(new Argument('[KIND]', 'what goes wrong').choices(SERVER_FAULT_KINDS))
    .option('--for <TIME>', 'how long it lasts, such as 5s (hang, disk_full, slow_exec)', duration)
    .option('--delay <TIME>', 'how long each command waits, such as 500ms (slow_exec)', duration)
    .option('--times <N>', 'for how many commands (slow_exec, oom)', wholeNumber)
    .addHelpText('after', MORE_SERVER)
    .action(async (id: string, kind: string | undefined, options: ServerOptions) => {
      const client = await connectControl(session, options)
      const target = path`/_berth/servers/${id}/fault`
      const { lastingText, SERVER_FAULT_COLUMNS } = await import('../faults/show.ts')
      if (kind === undefined) {
        const answer = await client.request<{ faults: ShownFault[] }>('GET', target)
        if (options.json) return printJson(session, answer)
        if (answer.faults.length === 0) return stdout.write(`Nothing goes wrong inside ${id}.\n`)
        return stdout.write(table(stdout, SERVER_FAULT_COLUMNS, answer.faults))
      }
      const { for: forMs, delay, times } = options
      const body = { kind, for_ms: forMs, delay_ms: delay, times }
      const made = await client.request<ShownFault>('POST', target, { body })
      if (options.json) return printJson(session, made)
      await stdout.write(
        made.active ? `${kind} in ${id}: ${lastingText(made)}.\n` : `${kind} in ${id}: it has happened.\n`,
      )
    })

  add('lift <SERVER>', 'end what goes wrong inside a server, all or one kind')
    .addArgument(new Argument('[KIND]', 'one kind alone').choices(SERVER_FAULT_KINDS))
    .action(async (id: string, kind: string | undefined, options: Options) => {
      const client = await connectControl(session, options)
      const target =
        kind === undefined ? path`/_berth/servers/${id}/fault` : path`/_berth/servers/${id}/fault/${kind}`
      const answer = await client.request<{ lifted: string[] }>('DELETE', target)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Lifted ${answer.lifted.join(', ') || 'nothing'}.\n`)
    })
}

const withMatches = (command: Command): Command =>
  command
    .option('--operation <OPERATION>', 'an operation, such as exec.run')
    .addOption(
      new Option('--method <METHOD>', 'a method').choices(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']),
    )
    .option('--path <PATH>', 'a path, or a glob of paths such as "/servers/*/exec"')
    .option('--account <ACCOUNT>', 'the requests of one account')

const withEffects = (command: Command): Command =>
  command
    .option('--error <STATUS>', 'answer with this status, 400 to 599', wholeNumber)
    .option('--code <CODE>', 'the code in that answer')
    .option('--message <TEXT>', 'the sentence in that answer')
    .option('--delay <TIME>', 'wait first, such as 500ms', duration)
    .option('--disconnect', 'cut the connection without an answer')
    .option('--backend-fail', 'have the compute backend fail')
    .option('--times <N>', 'how often it strikes (default always)', wholeNumber)
    .option('--after <N>', 'how many requests pass first (default 0)', wholeNumber)
    .option('--probability <P>', 'how likely it strikes, 0 to 1 (default 1)', chance)
    .option('--seed <N>', 'what decides then: the same seed, the same requests', wholeNumber)
    .addHelpText('after', MORE_ADD)

const matchOf = ({ operation, method, path, account }: AddOptions) => ({
  operation,
  method,
  path,
  account_id: account,
})

const whenOf = ({ times, after, probability, seed }: AddOptions) => ({ times, after, probability, seed })

/** @throws UsageError where none is given, or several */
function effectOf({ error, code, message, delay, disconnect, backendFail }: AddOptions): object {
  if (error === undefined && (code !== undefined || message !== undefined)) {
    throw new UsageError('--code and --message belong to --error: give its status too.')
  }
  const given = [
    error === undefined ? null : { error: { status: error, code, message } },
    delay === undefined ? null : { delay_ms: delay },
    disconnect ? { disconnect: true } : null,
    backendFail ? { backend: 'fail' } : null,
  ].filter((effect) => effect !== null)
  const [effect, second] = given
  if (effect === undefined) {
    throw new UsageError('Say what happens: --error STATUS, --delay TIME, --disconnect or --backend-fail.')
  }
  if (second === undefined) return effect
  throw new UsageError('One fault has one effect. Set a fault for each: delays add up with others.')
}

function wholeNumber(given: string): number {
  if (/^\d{1,15}$/.test(given)) return Number(given)
  throw new InvalidArgumentError('Expected a whole number.')
}

function chance(given: string): number {
  const number = given.trim() === '' ? Number.NaN : Number(given)
  if (number >= 0 && number <= 1) return number
  throw new InvalidArgumentError('Expected a number from 0 to 1.')
}

function duration(given: string): number {
  const ms = parseDuration(given)
  if (ms !== null) return ms
  throw new InvalidArgumentError('Expected a duration such as 500ms, 5s or 1m.')
}
