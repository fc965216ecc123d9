import { EVENT_NAMES, type EventName } from '../../resources/events/names.ts'
import type { Webhook } from '../../resources/webhooks/model.ts'
import { action, call, type Noun, rows } from '../command.ts'
import { type NameWords, namedBy } from '../names.ts'
import { textOption } from '../options.ts'
import { facts } from '../output.ts'
import type { Column } from '../table.ts'

const eventsText = (events: readonly string[]): string =>
  events.length === EVENT_NAMES.length ? 'all' : events.join(', ')

const COLUMNS: readonly Column<Webhook>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'URL', cell: ({ url }) => url, elastic: true },
  { heading: 'CREATED', cell: ({ created_at }) => created_at, minor: 1 },
  {
    heading: 'EVENTS',
    cell: ({ events, disabled_at: at }) => `${at === null ? '' : 'disabled: '}${eventsText(events)}`,
    style: ({ disabled_at: at }) => (at === null ? undefined : 'red'),
    elastic: true,
  },
]

const WORDS: NameWords = {
  one: 'webhook',
  by: ['URL'],
  listedBy: 'berth webhooks',
  none: 'Make one with "berth webhooks create URL".',
}

/** `berth webhooks` */
export const webhooksNoun: Noun = {
  name: 'webhooks',
  summary: 'subscribe to events',
  description: 'Subscribes to events. Plain "berth webhooks" lists the subscriptions.',
  names: [
    {
      placeholder: 'WEBHOOK',
      words: WORDS,
      list: namedBy(
        'url',
        async (client, signal) => (await client.call('webhooks.list', { signal })).webhooks,
      ),
    },
  ],
  commands: [
    call('webhooks.list', {
      usage: 'list',
      description: 'list all webhooks, newest first',
      show: rows('webhooks', COLUMNS, 'No webhooks yet. Make one with "berth webhooks create URL".\n'),
    }),
    call('webhooks.create', {
      usage: 'create <URL>',
      description: 'send events to a URL; the signing secret is shown this once',
      options: {
        events: textOption(
          'EVENTS',
          'names with commas between them, such as task.created,task.failed (default all)',
        ),
      },
      request: ([url], { events }) => {
        const names = events?.split(',').flatMap((name) => name.trim() || [])
        // The API checks the names.
        return { body: { url, events: names as EventName[] | undefined } }
      },
      show: (created, { out }) =>
        `${facts(out, [
          ['ID', created.id],
          ['URL', created.url],
          ['Events', eventsText(created.events)],
          ['Secret', created.secret],
        ])}\nKeep the secret: it verifies the signatures and is not shown again.\n`,
    }),
    call('webhooks.enable', {
      usage: 'enable <WEBHOOK>',
      description: 'send events again to a webhook that its receiver switched off with 410',
      request: async ([named], _, { idOf }) => ({ params: { webhookId: await idOf('WEBHOOK', named) } }),
      show: ({ webhook: { id, url } }) => `Events from now on are sent by ${id} to ${url}.\n`,
    }),
    action({
      usage: 'local [STATE]',
      operations: ['control.localWebhooks.get', 'control.localWebhooks.update'],
      description: 'show or change whether webhooks may lead to this machine',
      access: 'control',
      arguments: { STATE: { description: 'what holds until berth stops', choices: ['on', 'off'] } },
      help: `
Webhooks go to public https addresses only. "on" also admits http and loopback, such as
http://localhost:3000/hook and the inboxes of the instance. "berth serve --allow-local-webhooks"
starts with it on.
`,
      async run({ args: [state], connect, print }) {
        const client = await connect()
        const response =
          state === undefined
            ? await client.call('control.localWebhooks.get')
            : await client.call('control.localWebhooks.update', { body: { allowed: state === 'on' } })
        await print(response, ({ allowed }) =>
          allowed
            ? 'Webhooks may lead to this machine.\n'
            : 'Webhooks go to public https addresses only. "berth webhooks local on" admits this machine.\n',
        )
      },
    }),
    call('webhooks.delete', {
      usage: 'delete <WEBHOOK>',
      description: 'end a subscription',
      request: async ([named], _, { idOf }) => ({ params: { webhookId: await idOf('WEBHOOK', named) } }),
      show: ({ id }) => `Deleted ${id}.\n`,
    }),
  ],
}
