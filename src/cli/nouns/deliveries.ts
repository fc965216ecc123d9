import { EVENT_NAMES } from '../../resources/events/names.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { call, type Noun, rows } from '../command.ts'
import type { Named, NameWords } from '../names.ts'
import { choiceOption, textOption, wholeNumber } from '../options.ts'
import { facts, paint, type Style } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import type { Column } from '../table.ts'

type Delivery = ResponseOf<'control.deliveries.get'>
type Summary = ResponseOf<'control.deliveries.summary'>['webhooks'][number]
type Attempt = Delivery['attempts'][number]

/** Colours by status of a delivery. */
export const DELIVERY_STYLES: Readonly<Record<Delivery['status'], Style>> = {
  pending: 'yellow',
  delivered: 'green',
  failed: 'red',
  disabled: 'red',
}

// Not imported from the model, which would load the validators of requests.
const STATUSES = [
  'pending',
  'delivered',
  'failed',
  'disabled',
] as const satisfies readonly Delivery['status'][]

const COLUMNS: readonly Column<Delivery>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'STATUS', cell: ({ status }) => status, style: ({ status }) => DELIVERY_STYLES[status] },
  { heading: 'EVENT', cell: ({ event }) => event },
  { heading: 'ATTEMPTS', cell: ({ attempts }) => String(attempts.length), right: true, minor: 3 },
  { heading: 'LAST ANSWER', cell: ({ attempts }) => outcomeOf(attempts.at(-1)) },
  { heading: 'CREATED', cell: ({ created_at }) => created_at, minor: 1 },
  { heading: 'URL', cell: ({ url }) => url, minor: 2, elastic: true },
]

const SUMMARY_COLUMNS: readonly Column<Summary>[] = [
  { heading: 'WEBHOOK', cell: ({ webhook_id }) => webhook_id },
  { heading: 'DELIVERED', cell: ({ delivered }) => String(delivered), right: true },
  { heading: 'FAILED', cell: ({ failed }) => String(failed), right: true },
  { heading: 'PENDING', cell: ({ pending }) => String(pending), right: true, minor: 2 },
  { heading: 'DISABLED', cell: ({ disabled }) => String(disabled), right: true, minor: 2 },
  {
    heading: 'SUCCESS',
    cell: ({ success_rate: rate }) => (rate === null ? '–' : `${Math.floor(rate * 1000) / 10} %`),
    right: true,
  },
  { heading: 'LAST ERROR', cell: ({ last_error }) => last_error ?? '', minor: 1, elastic: true },
  { heading: 'URL', cell: ({ url }) => url, minor: 3, elastic: true },
]

const WORDS: NameWords = {
  one: 'delivery',
  listedBy: 'berth deliveries',
  none: 'Send one with "berth trigger EVENT".',
}

/** `berth deliveries` */
export const deliveriesNoun: Noun = {
  name: 'deliveries',
  summary: 'what was sent to webhooks, and what came back',
  description:
    'Shows what was sent to webhooks and what came back. Plain "berth deliveries" lists it, newest first.',
  names: [{ placeholder: 'DELIVERY', words: WORDS, list: listNamed }],
  commands: [
    call('control.deliveries.list', {
      usage: 'list',
      description: 'list deliveries, newest first',
      options: {
        webhook: textOption('WEBHOOK', 'those to one webhook, by its id or URL'),
        event: choiceOption('EVENT', 'those of events of one name', EVENT_NAMES),
        account: textOption('ACCOUNT', 'those of one account'),
        status: choiceOption('STATUS', STATUSES.join(', '), STATUSES),
        limit: wholeNumber('N', 'how many at most (default 100)', { least: 1 }),
      },
      request: async (_, { webhook, event, account, status, limit = 100 }, { idOf }) => ({
        query: {
          webhook_id: await idOf('WEBHOOK', webhook),
          account_id: await idOf('ACCOUNT', account),
          event,
          status,
          limit,
        },
      }),
      show: rows('deliveries', COLUMNS, 'No deliveries. Subscribe with "berth webhooks create URL".\n'),
    }),
    call('control.deliveries.summary', {
      usage: 'summary',
      description: 'show how the deliveries to each webhook went',
      options: { account: textOption('ACCOUNT', 'those of one account') },
      request: async (_, { account }, { idOf }) => ({
        query: { account_id: await idOf('ACCOUNT', account) },
      }),
      show: rows('webhooks', SUMMARY_COLUMNS, 'No webhooks. Subscribe with "berth webhooks create URL".\n'),
    }),
    call('control.deliveries.get', {
      usage: 'get <DELIVERY>',
      aliases: ['show'],
      description: 'show one with all its attempts',
      request: async ([named], _, { idOf }) => ({ params: { deliveryId: await idOf('DELIVERY', named) } }),
      show: (delivery, { out }) => deliveryText(out, delivery),
    }),
    call('control.deliveries.retry', {
      usage: 'retry <DELIVERY>',
      description: 'attempt one at once, whatever became of it',
      request: async ([named], _, { idOf }) => ({ params: { deliveryId: await idOf('DELIVERY', named) } }),
      show: ({ id }, { args: [given] }) =>
        `Attempting ${id} again. See what came back: berth deliveries show ${given}\n`,
    }),
  ],
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { deliveries: all } = await client.call('control.deliveries.list', { query: { limit: 100 }, signal })
  return all.map(({ id, status, event }) => ({ id, description: `${status}, ${event}` }))
}

const outcomeOf = (attempt: Attempt | undefined): string =>
  attempt === undefined ? '–' : attempt.status === null ? (attempt.error ?? 'none') : String(attempt.status)

/** Returns a delivery in full. All attempts send the same, except for the signature. */
function deliveryText(out: OutputStream, delivery: Delivery): string {
  const { id, status, event, event_id, webhook_id, account_id, url, created_at, next_attempt_at } = delivery
  const head = facts(out, [
    ['ID', id],
    ['Status', status],
    ['Event', `${event} (${event_id})`],
    ['Webhook', webhook_id],
    ['Account', account_id],
    ['URL', url],
    ['Created', created_at],
    ...(next_attempt_at === null ? [] : [['Next', next_attempt_at] as const]),
  ])
  return head + delivery.attempts.map((attempt) => attemptText(out, attempt)).join('')
}

function attemptText(out: OutputStream, attempt: Attempt): string {
  const { number, at, ms, error, request, response } = attempt
  const title = `\nAttempt ${number}, ${at}: ${outcomeOf(attempt)} after ${Math.round(ms)} ms\n`
  const block = (label: string, text: string): string => {
    if (text === '') return ''
    const indented = toPlainText(text)
      .trimEnd()
      .replace(/^(?=.)/gm, '  ')
    return `${paint(out, 'dim', label)}\n${indented}\n`
  }
  const messageText = ({ headers, body }: { headers: Record<string, string>; body: string }): string =>
    [...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', body].join('\n')
  return (
    paint(out, 'bold', title) +
    block('Sent', messageText(request)) +
    block('Answered', response === null ? '' : messageText(response).trim()) +
    block('Error', error ?? '')
  )
}
