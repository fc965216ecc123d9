import { UsageError } from '../../errors.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { action, call, type Noun, rows } from '../command.ts'
import { untilInterrupted } from '../interrupt.ts'
import type { Named } from '../names.ts'
import { flag, wholeNumber } from '../options.ts'
import { formatBytes, paint, printable } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import type { Column } from '../table.ts'

type Inbox = ResponseOf<'control.inbox.list'>['inboxes'][number]
type Entry = ResponseOf<'control.inbox.read'>['entries'][number]

const COLUMNS: readonly Column<Inbox>[] = [
  { heading: 'INBOX', cell: ({ name }) => name },
  { heading: 'ENTRIES', cell: (one) => String(one.count), right: true },
  { heading: 'SIZE', cell: ({ bytes }) => formatBytes(bytes), right: true },
  { heading: 'LAST', cell: (one) => one.last_received_at },
]

/** Headers that every client sends, which are omitted. */
const COMMON_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'host',
  'transfer-encoding',
])

/** `berth inbox` */
export const inboxNoun: Noun = {
  name: 'inbox',
  summary: 'look at what was posted to the inboxes for webhooks',
  description:
    'Looks at what was posted to the inboxes, with the verdict on each signature. Plain "berth inbox" lists them.',
  help: `
An inbox is there as soon as something is posted to its URL, which takes no credential:
  berth webhooks local on
  berth webhooks create http://127.0.0.1:4747/_berth/inbox/mine
  berth trigger task.completed
  berth inbox show mine

With "?respond=503,200" after the URL the first attempt of each event gets 503 and the next 200;
"?delay_ms=500" delays the responses.
`,
  names: [{ placeholder: 'INBOX', words: null, list: listNamed }],
  commands: [
    call('control.inbox.list', {
      usage: 'list',
      description: 'list the inboxes, the one that got something last first',
      show: rows('inboxes', COLUMNS, async ({ connect }) => {
        const { baseUrl } = await connect()
        return `Nothing yet. Point a webhook at ${baseUrl}/_berth/inbox/NAME.\n`
      }),
    }),
    action({
      usage: 'get <INBOX>',
      operations: ['control.inbox.read'],
      aliases: ['show'],
      description: 'show what an inbox got, oldest first',
      access: 'control',
      options: {
        limit: wholeNumber('N', 'the last N entries only', { least: 1, most: 1_000 }),
        follow: flag('continue with new ones, until Ctrl-C; with --json one line each', { short: 'f' }),
      },
      async run({ args: [name], options: { limit, follow }, connect, print }) {
        const client = await connect()
        const params = { name }
        const response = await client.call('control.inbox.read', { params, query: { limit } })
        const oldestFirst = response.entries.toReversed()
        if (!follow) {
          const none = `Nothing yet. It is at ${client.baseUrl}/_berth/inbox/${encodeURIComponent(name)}.\n`
          return print(
            response,
            (_, { out }) => oldestFirst.map((entry) => entryText(out, entry)).join('') || none,
          )
        }
        const show = (entry: Entry): Promise<number> => print(entry, (_, { out }) => entryText(out, entry))
        for (const entry of oldestFirst) await show(entry)
        return untilInterrupted(async (signal) => {
          const query = { follow: 'true', after: response.entries[0]?.id ?? 'start' } as const
          for await (const { data } of client.stream('control.inbox.read', { params, query, signal }))
            await show(data)
          return 0
        })
      },
    }),
    action({
      usage: 'clear [INBOX]',
      operations: ['control.inbox.clear', 'control.inbox.clearAll'],
      aliases: ['delete', 'rm'],
      description: 'empty an inbox',
      access: 'control',
      options: { all: flag('empty all of them') },
      async run({ args: [name], options: { all }, connect, print }) {
        if ((name === undefined) !== (all === true))
          throw new UsageError('Name the inbox to empty, or give --all for all of them.')
        const client = await connect()
        const response =
          name === undefined
            ? await client.call('control.inbox.clearAll')
            : await client.call('control.inbox.clear', { params: { name } })
        await print(
          response,
          ({ removed }) => `Removed ${removed === 1 ? '1 entry' : `${removed} entries`}.\n`,
        )
      },
    }),
  ],
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { inboxes } = await client.call('control.inbox.list', { signal })
  return inboxes.map(({ name, last_received_at }) => ({ id: name, description: last_received_at }))
}

/** Returns an entry in full. */
function entryText(out: OutputStream, entry: Entry): string {
  const { id, received_at, verified, reason, status, query, headers } = entry
  const [mark, style] =
    verified === null
      ? (['?', 'yellow'] as const)
      : verified
        ? (['✓', 'green'] as const)
        : (['✗', 'red'] as const)
  const head = [
    paint(out, 'bold', id),
    received_at,
    `answered ${status}`,
    query === '' ? '' : `?${printable(query)}`,
  ]
  const lines = Object.entries(headers)
    .filter(([name]) => !COMMON_HEADERS.has(name))
    .map(([name, value]) => `  ${paint(out, 'dim', `${printable(name)}:`)} ${printable(value)}`)
  return [
    head.filter(Boolean).join('  '),
    `  ${paint(out, style, `${mark} ${printable(reason)}`)}`,
    ...lines,
    ...bodyText(entry)
      .split('\n')
      .map((line) => `  ${line}`.trimEnd()),
    '',
    '',
  ].join('\n')
}

function bodyText({ body, json, encoding }: Entry): string {
  if (json !== undefined) return toPlainText(JSON.stringify(json, null, 2))
  if (body === '') return '(no body)'
  return encoding ? `(${encoding}) ${body}` : toPlainText(body.trimEnd())
}
