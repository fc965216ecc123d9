import type { PartsOf } from '../../contract/client.ts'
import type { Client } from '../client.ts'
import { untilInterrupted } from '../interrupt.ts'
import { followRequests, type JournalEntry } from '../logs/follow.ts'
import { flag, text, wholeNumber } from '../options.ts'
import { count, paint } from '../output.ts'
import { plain } from '../plain-text.ts'
import { action, jsonLines } from '../runner.ts'
import type { Sink } from '../terminal.ts'

/** Requests that are listed where nothing else is said. */
const LISTED = 100

/** `berth logs` */
export const logs = action({
  usage: 'logs',
  summary: 'the requests to the API, and what nearly was right',
  description:
    'Prints the requests that the API has answered, the latest last, with fields that nothing read and paths that lead nowhere below them. Secrets are masked.',
  access: 'control',
  json: jsonLines('request'),
  options: {
    follow: flag('go on with what comes, until Ctrl-C', { short: 'f' }),
    bodies: flag('what was sent and answered, too'),
    nearMisses: flag('only requests of which something was not read or led nowhere'),
    method: text('METHOD', 'those of one method'),
    path: text('PATTERN', 'those of a path; * stands for anything'),
    status: text('STATUS', 'those with a status, or 4xx for all of its hundred'),
    operation: text('OPERATION', 'those of one operation'),
    account: text('ACCOUNT', 'those of one account'),
    limit: wholeNumber('N', `at most so many, the latest (default ${LISTED})`, { least: 1 }),
    clear: flag('forget all requests instead'),
  },
  help: `
Examples:
  berth logs -f                          every request as it comes
  berth logs --status 4xx --bodies       what was refused, with what was sent
  berth logs --near-misses               what a client sent that nothing read
  berth logs --path '/servers/*' --json  for programs, one line each
`,
  async run({ session: { terminal }, options, connect, reconnect, print }) {
    const { bodies = false, limit } = options
    if (options.clear) {
      const client = await connect()
      const response = await client.call('control.requests.clear')
      await print(response, ({ deleted }) => `Forgot ${count(deleted, 'request')}.\n`)
      return 0
    }
    const { method, path, status, operation, account, nearMisses } = options
    const query = {
      ...{ method, path, status, operation },
      account_id: account,
      near_misses: nearMisses ? ('true' as const) : undefined,
    }
    const show = async (entry: JournalEntry): Promise<void> => {
      const { requestText } = await import('../logs/view.ts')
      await print(entry, (_, { sink }) => requestText(sink, entry, bodies))
    }
    if (options.follow) {
      const following = { open: reconnect, query, show, stderr: terminal.stderr, limit }
      return untilInterrupted((signal) => follow({ ...following, signal }))
    }
    const client = await connect()
    const { requests } = await client.call('control.requests.list', {
      query: { ...query, limit: limit ?? LISTED },
    })
    if (requests.length === 0 && !options.json)
      await terminal.stdout.write('No requests that fit. "berth logs -f" shows them as they come.\n')
    for (const entry of requests.toReversed()) await show(entry)
    return 0
  },
})

/** Which requests are shown as they come, and how. */
interface Following {
  open: () => Promise<Client>
  query: PartsOf<'control.requests.list'>['query']
  show: (entry: JournalEntry) => Promise<void>
  stderr: Sink
  limit: number | undefined
  signal: AbortSignal
}

async function follow({ open, query, show, stderr, limit, signal }: Following): Promise<number> {
  const onChange = (reason: string | null): Promise<void> => {
    const notice = reason === null ? 'The instance is back.' : `${plain(reason)} Waiting until it is back.`
    return stderr.write(paint(stderr, reason === null ? 'green' : 'yellow', `berth: ${notice}\n`))
  }
  let left = limit ?? Number.POSITIVE_INFINITY
  for await (const entry of followRequests({ open, query, signal, onChange })) {
    await show(entry)
    left -= 1
    if (left === 0) break
  }
  return 0
}
