import { type Command, Option } from 'commander'
import { DELIVERY_STATUSES } from '../../resources/webhooks/model.ts'
import type { Delivery } from '../../testing/api/deliveries.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, facts, paint, type Style, table } from '../output.ts'
import { path } from '../path.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'
import { plain } from '../tasks/plain.ts'
import type { Sink } from '../terminal.ts'
import { wholeNumber } from '../whole-number.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  webhook?: string
  account?: string
  status?: string
  limit?: number
}

type Attempt = Delivery['attempts'][number]

const STYLES: Record<Delivery['status'], Style> = { pending: 'yellow', delivered: 'green', failed: 'red' }

const COLUMNS: Column<Delivery>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'STATUS', cell: ({ status }) => status, style: ({ status }) => STYLES[status] },
  { heading: 'EVENT', cell: ({ event }) => event },
  { heading: 'ATTEMPTS', cell: ({ attempts }) => String(attempts.length), right: true },
  { heading: 'LAST ANSWER', cell: ({ attempts }) => outcomeOf(attempts.at(-1)) },
  { heading: 'CREATED', cell: ({ created_at }) => created_at },
  { heading: 'URL', cell: ({ url }) => url },
]

/** Adds `deliveries` and what can be done with them. */
export function registerDeliveries(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const deliveries = program
    .command('deliveries')
    .helpCommand(false)
    .summary('what was sent to webhooks, and what came back')
    .description(
      'Shows what was sent to webhooks and what came back. Plain "berth deliveries" lists it, newest first.',
    )
  const add = (usage: string, description: string) =>
    withControl(withJson(deliveries.command(usage).description(description)))

  add('list', 'list deliveries, newest first')
    .option('--webhook <WEBHOOK>', 'those to one webhook')
    .option('--account <ACCOUNT>', 'those of one account')
    .addOption(new Option('--status <STATUS>', DELIVERY_STATUSES.join(', ')).choices(DELIVERY_STATUSES))
    .option('--limit <N>', 'at most so many (default 100)', wholeNumber)
    .action(async (options: Options) => {
      const client = await connectControl(session, options)
      const { webhook, account, status, limit = 100 } = options
      const query = {
        limit: String(limit),
        ...(webhook === undefined ? {} : { webhook_id: webhook }),
        ...(account === undefined ? {} : { account_id: account }),
        ...(status === undefined ? {} : { status }),
      }
      const answer = await client.request<{ deliveries: Delivery[] }>('GET', '/_berth/deliveries', { query })
      if (options.json) return printJson(session, answer)
      if (answer.deliveries.length === 0)
        return stdout.write('No deliveries. Subscribe with "berth webhooks create URL".\n')
      await stdout.write(table(stdout, COLUMNS, answer.deliveries))
    })

  add('show <DELIVERY>', 'show one with all its attempts').action(async (id: string, options: Options) => {
    const client = await connectControl(session, options)
    const delivery = await client.request<Delivery>('GET', path`/_berth/deliveries/${id}`)
    if (options.json) return printJson(session, delivery)
    await stdout.write(textOf(stdout, delivery))
  })

  add('retry <DELIVERY>', 'attempt one at once, whatever became of it').action(
    async (id: string, options: Options) => {
      const client = await connectControl(session, options)
      const delivery = await client.request<Delivery>('POST', path`/_berth/deliveries/${id}/retry`)
      if (options.json) return printJson(session, delivery)
      await stdout.write(`Attempting ${delivery.id} again. See what came back: berth deliveries show ${id}\n`)
    },
  )
}

const outcomeOf = (attempt: Attempt | undefined): string =>
  attempt === undefined ? '–' : attempt.status === null ? (attempt.error ?? 'none') : String(attempt.status)

/** A delivery in full: what was sent is the same in each attempt but for its signature. */
function textOf(sink: Sink, delivery: Delivery): string {
  const { id, status, event, event_id, webhook_id, account_id, url, created_at, next_attempt_at } = delivery
  const head = facts(sink, [
    ['ID', id],
    ['Status', status],
    ['Event', `${event} (${event_id})`],
    ['Webhook', webhook_id],
    ['Account', account_id],
    ['URL', url],
    ['Created', created_at],
    ...(next_attempt_at === null ? [] : [['Next', next_attempt_at] as const]),
  ])
  return head + delivery.attempts.map((attempt) => attemptText(sink, attempt)).join('')
}

function attemptText(sink: Sink, attempt: Attempt): string {
  const { number, at, ms, error, request, response } = attempt
  const title = `\nAttempt ${number}, ${at}: ${outcomeOf(attempt)} after ${Math.round(ms)} ms\n`
  const block = (label: string, text: string): string => {
    if (text === '') return ''
    const indented = plain(text)
      .trimEnd()
      .replace(/^(?=.)/gm, '  ')
    return `${paint(sink, 'dim', label)}\n${indented}\n`
  }
  const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`)
  return (
    paint(sink, 'bold', title) +
    block('Sent', [...headers, '', request.body].join('\n')) +
    block('Answered', response?.body ?? '') +
    block('Error', error ?? '')
  )
}
