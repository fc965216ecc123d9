import type { Command } from 'commander'
import type { ShownEntry } from '../../testing/journal/shown.ts'
import { count } from '../format.ts'
import type { ConnectionOptions } from '../instance.ts'
import { untilInterrupted } from '../interrupt.ts'
import { paint } from '../output.ts'
import { connectControl, printJson, type Session, withControl } from '../session.ts'
import { plain } from '../tasks/plain.ts'
import { wholeNumber } from '../whole-number.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  follow?: boolean
  bodies?: boolean
  nearMisses?: boolean
  clear?: boolean
  method?: string
  path?: string
  status?: string
  operation?: string
  account?: string
  limit?: number
}

const MORE = `
Examples:
  berth logs -f                          every request as it comes
  berth logs --status 4xx --bodies       what was refused, with what was sent
  berth logs --near-misses               what a client sent that nothing read
  berth logs --path '/servers/*' --json  for programs, one line each
`

/** Adds `logs`. */
export function registerLogs(program: Command, session: Session): void {
  withControl(program.command('logs'))
    .summary('the requests to the API, and what nearly was right')
    .description(
      'Prints the requests that the API has answered, the latest last, with fields that nothing read and paths that lead nowhere below them. Secrets are masked.',
    )
    .option('-f, --follow', 'go on with what comes, until Ctrl-C')
    .option('--bodies', 'what was sent and answered, too')
    .option('--near-misses', 'only requests of which something was not read or led nowhere')
    .option('--method <METHOD>', 'those of one method')
    .option('--path <PATTERN>', 'those of a path; * stands for anything')
    .option('--status <STATUS>', 'those with a status, or 4xx for all of its hundred')
    .option('--operation <OPERATION>', 'those of one operation')
    .option('--account <ACCOUNT>', 'those of one account')
    .option('--limit <N>', 'at most so many, the latest (default 100)', wholeNumber)
    .option('--clear', 'forget all requests instead')
    .option('--json', 'one line of JSON for each request, for programs')
    .addHelpText('after', MORE)
    .action(async (options: Options) => {
      if (options.clear) return clear(session, options)
      const show = (entry: ShownEntry): Promise<void> => print(session, entry, options)
      if (options.follow) {
        session.exitCode = await untilInterrupted((signal) => follow(session, options, show, signal))
        return
      }
      const client = await connectControl(session, options)
      const query = { ...queryOf(options), limit: String(options.limit ?? 100) }
      const answer = await client.request<{ requests: ShownEntry[] }>('GET', '/_berth/requests', { query })
      if (answer.requests.length === 0 && !options.json)
        return session.terminal.stdout.write(
          'No requests that fit. "berth logs -f" shows them as they come.\n',
        )
      for (const entry of answer.requests.reverse()) await show(entry)
    })
}

function queryOf({ method, path, status, operation, account, nearMisses }: Options): Record<string, string> {
  return {
    ...(method === undefined ? {} : { method }),
    ...(path === undefined ? {} : { path }),
    ...(status === undefined ? {} : { status }),
    ...(operation === undefined ? {} : { operation }),
    ...(account === undefined ? {} : { account_id: account }),
    ...(nearMisses ? { near_misses: 'true' } : {}),
  }
}

async function follow(
  session: Session,
  options: Options,
  show: (entry: ShownEntry) => Promise<void>,
  signal: AbortSignal,
): Promise<number> {
  const { followRequests } = await import('../logs/follow.ts')
  const { stderr } = session.terminal
  const onChange = (reason: string | null): Promise<void> => {
    const text = reason === null ? 'The instance is back.' : `${plain(reason)} Waiting until it is back.`
    return stderr.write(paint(stderr, reason === null ? 'green' : 'yellow', `berth: ${text}\n`))
  }
  let left = options.limit ?? Number.POSITIVE_INFINITY
  const open = () => connectControl(session, options)
  for await (const entry of followRequests({ open, query: queryOf(options), signal, onChange })) {
    await show(entry)
    left -= 1
    if (left === 0) break
  }
  return 0
}

async function print(session: Session, entry: ShownEntry, { json, bodies }: Options): Promise<void> {
  if (json) return printJson(session, entry)
  const { shownRequest } = await import('../logs/view.ts')
  const { stdout } = session.terminal
  await stdout.write(shownRequest(stdout, entry, bodies === true))
}

async function clear(session: Session, options: Options): Promise<void> {
  const client = await connectControl(session, options)
  const answer = await client.request<{ deleted: number }>('DELETE', '/_berth/requests')
  if (options.json) return printJson(session, answer)
  await session.terminal.stdout.write(`Forgot ${count(answer.deleted, 'request')}.\n`)
}
