import type { PartsOf, ResponseOf } from '../../client/client.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { flag, text, wholeNumber } from '../options.ts'
import { count, paint, printable, type Style } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import { followStream } from '../reconnect.ts'
import { action, jsonLines } from '../runner.ts'

/** Default number of requests to list. */
const DEFAULT_LIMIT = 100

/** `berth logs` */
export const logs = action({
  usage: 'logs',
  summary: 'the requests to the API, and what nearly was right',
  description:
    'Prints the requests to the API, the latest last, with fields that nothing read and paths that lead nowhere below them. Secrets are masked.',
  access: 'control',
  json: jsonLines('request'),
  options: {
    follow: flag('continue with new ones, until Ctrl-C', { short: 'f' }),
    bodies: flag('with the bodies of requests and responses'),
    nearMisses: flag('only requests of which something was not read or led nowhere'),
    method: text('METHOD', 'those of one method'),
    path: text('PATTERN', 'those of a path; * matches anything'),
    status: text('STATUS', 'those with a status, or 4xx for all of its hundred'),
    operation: text('OPERATION', 'those of one operation'),
    account: text('ACCOUNT', 'those of one account'),
    limit: wholeNumber('N', `how many at most, the latest (default ${DEFAULT_LIMIT})`, { least: 1 }),
    clear: flag('forget all requests instead'),
  },
  help: `
Examples:
  berth logs -f                          every request as it is made
  berth logs --status 4xx --bodies       what was refused, with what was sent
  berth logs --near-misses               what a client sent that nothing read
  berth logs --path '/servers/*' --json  for programs, one line each
`,
  async run({ session: { context }, options, connect, reconnect, idOf, print }) {
    const { bodies = false, limit } = options
    if (options.clear) {
      const client = await connect()
      const response = await client.call('control.requests.clear')
      await print(response, ({ deleted }) => `Forgot ${count(deleted, 'request')}.\n`)
      return 0
    }
    const { method, path, status, operation, nearMisses } = options
    const query = {
      ...{ method, path, status, operation },
      account_id: await idOf('ACCOUNT', options.account),
      near_misses: nearMisses ? ('true' as const) : undefined,
    }
    const show = (entry: JournalEntry): Promise<number> =>
      print(entry, (_, { out }) => requestText(out, entry, bodies))
    if (options.follow) {
      const onConnectionChange = connectionReporter(context.stderr)
      return untilInterrupted(async (signal) => {
        let left = limit ?? Number.POSITIVE_INFINITY
        for await (const entry of followRequests({ connect: reconnect, query, signal, onConnectionChange })) {
          await show(entry)
          left -= 1
          if (left === 0) break
        }
        return 0
      })
    }
    const client = await connect()
    const { requests } = await client.call('control.requests.list', {
      query: { ...query, limit: limit ?? DEFAULT_LIMIT },
    })
    if (requests.length === 0 && !options.json)
      await context.stdout.write('No requests that fit. "berth logs -f" shows them as they come.\n')
    for (const entry of requests.toReversed()) await show(entry)
    return 0
  },
})

/** A request in the journal. */
type JournalEntry = ResponseOf<'control.requests.list'>['requests'][number]

/** Returns a function that prints that the connection to the instance was lost or restored. */
const connectionReporter =
  (stderr: OutputStream) =>
  (reason: string | null): Promise<void> => {
    const notice =
      reason === null ? 'The instance is back.' : `${toPlainText(reason)} Waiting until it is back.`
    return stderr.write(paint(stderr, reason === null ? 'green' : 'yellow', `berth: ${notice}\n`))
  }

/** The requests to follow. */
interface FollowOptions {
  /** Connects to the instance, which may have a new address after a restart. */
  connect: () => Promise<Client>
  /** Filter of the control API. */
  query: PartsOf<'control.requests.list'>['query']
  signal: AbortSignal
  /** Called with the reason when the connection is lost, and with null when it is restored. */
  onConnectionChange: (reason: string | null) => Promise<void>
}

/**
 * Yields every new request until `signal` aborts, across restarts and resets of the instance.
 *
 * @throws CommandError if the instance cannot be reached at first, or no longer accepts the credential
 */
async function* followRequests({
  connect,
  query,
  signal,
  onConnectionChange,
}: FollowOptions): AsyncGenerator<JournalEntry, void> {
  const connection = await connect()
  let last = await newestRequestId(connection, signal)
  const followed = followStream({
    connection,
    async reconnect() {
      const client = await connect()
      // A start and a reset clear the journal.
      if (!(await hasRequest(client, last, signal))) last = 'start'
      return client
    },
    stream: (client) => {
      const followQuery = { ...query, follow: 'true', after: last } as const
      return client.stream('control.requests.list', { query: followQuery, signal })
    },
    signal,
  })
  for await (const one of followed) {
    if (one.type === 'item') {
      last = one.item.data.id
      yield one.item.data
    } else if (one.type === 'lost') await onConnectionChange(one.reason)
    else if (one.wasLost) await onConnectionChange(null)
  }
}

/** Returns the id of the last request; `start` if there is none. */
async function newestRequestId(client: Client, signal: AbortSignal): Promise<string> {
  const query = { limit: 1 }
  const { requests } = await client.call('control.requests.list', { query, signal })
  return requests[0]?.id ?? 'start'
}

async function hasRequest(client: Client, id: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.call('control.requests.list', { query: { after: id, limit: 1 }, signal })
    return true
  } catch (error) {
    if (error instanceof CommandError && error.code === 'bad_request') return false
    throw error
  }
}

/** Width of the longest method. */
const METHOD_WIDTH = 'DELETE'.length

/** Indentation of lines that belong to the line above. */
const INDENT = ' '.repeat('00:00:00  '.length)

/** Returns a request as text: one line, followed by its near misses and, with `bodies`, by the bodies. */
function requestText(out: OutputStream, entry: JournalEntry, bodies: boolean): string {
  const dim = (text: string): string => paint(out, 'dim', text)
  const status = paint(out, styleOf(entry.status), String(entry.status))
  const caller = [entry.operation, entry.account_id].filter((part) => part !== null).join('  ')
  const aborted = entry.aborted ? `  ${paint(out, 'yellow', 'the client had gone')}` : ''
  const line = [
    dim(entry.at.slice(11, 19)),
    status,
    `${Math.round(entry.ms)} ms`.padStart(8),
    entry.method.padEnd(METHOD_WIDTH),
    printable(entry.path),
  ].join('  ')
  const misses = entry.near_misses.map(({ at, message }) =>
    indentLine(paint(out, 'yellow', `${printable(at)}: `) + printable(message)),
  )
  const shown = bodies
    ? [bodyText('→', entry.request), bodyText('←', entry.response, entry.response_type)]
    : []
  return [
    `${line}  ${dim(printable(caller))}${aborted}\n`,
    ...misses,
    ...shown.map((text) => dim(text)),
  ].join('')
}

const indentLine = (text: string): string => `${INDENT}${text}\n`

function bodyText(sign: string, body: JournalEntry['request'], type: string | null = null): string {
  if (body === null) {
    const isJson = type === null || type.startsWith('application/json')
    return isJson ? '' : indentLine(`${sign} (${printable(type)})`)
  }
  const text = typeof body.body === 'string' ? body.body : JSON.stringify(body.body, null, 2)
  const lines = toPlainText(`${text}${body.truncated ? '…' : ''}`).split('\n')
  return lines.map((line, at) => indentLine(`${at === 0 ? sign : ' '} ${line}`)).join('')
}

function styleOf(status: number): Style {
  if (status >= 500) return 'red'
  return status >= 400 ? 'yellow' : 'green'
}
