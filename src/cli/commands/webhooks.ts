import type { Command } from 'commander'
import { EVENT_NAMES } from '../../resources/events/names.ts'
import type { CreatedWebhook, Webhook } from '../../resources/webhooks/model.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, facts, table } from '../output.ts'
import { path } from '../path.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'

/** The names, or that there is none missing. */
const eventsText = (events: readonly string[]): string =>
  events.length === EVENT_NAMES.length ? 'all' : events.join(', ')

interface Options extends ConnectionOptions {
  json?: boolean
  events?: string
}

const COLUMNS: Column<Webhook>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'URL', cell: ({ url }) => url },
  { heading: 'CREATED', cell: ({ created_at }) => created_at },
  { heading: 'EVENTS', cell: ({ events }) => eventsText(events) },
]

/** Adds `webhooks` and what can be done with them. */
export function registerWebhooks(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const webhooks = program
    .command('webhooks')
    .helpCommand(false)
    .summary('subscribe to events')
    .description('Subscribes to events. Plain "berth webhooks" lists the subscriptions.')
  const add = (usage: string, description: string) =>
    withConnection(withJson(webhooks.command(usage).description(description)))

  add('list', 'list all webhooks, newest first').action(async (options: Options) => {
    const client = await connect(session, options)
    const answer = await client.request<{ webhooks: Webhook[] }>('GET', '/webhooks')
    if (options.json) return printJson(session, answer)
    if (answer.webhooks.length === 0)
      return stdout.write('No webhooks yet. Make one with "berth webhooks create URL".\n')
    await stdout.write(table(stdout, COLUMNS, answer.webhooks))
  })

  add('create <URL>', 'send events to a URL; the signing secret is shown this once')
    .option(
      '--events <EVENTS>',
      'names with commas between them, such as task.created,task.failed (default all)',
    )
    .action(async (url: string, options: Options) => {
      const client = await connect(session, options)
      const events = options.events?.split(',').map((name) => name.trim())
      const created = await client.request<CreatedWebhook>('POST', '/webhooks', {
        body: { url, ...(events ? { events: events.filter(Boolean) } : {}) },
      })
      if (options.json) return printJson(session, created)
      await stdout.write(
        facts(stdout, [
          ['ID', created.id],
          ['URL', created.url],
          ['Events', eventsText(created.events)],
          ['Secret', created.secret],
        ]),
      )
      await stdout.write('\nKeep the secret: it verifies the signatures and is not shown again.\n')
    })

  add('delete <WEBHOOK>', 'end a subscription')
    .alias('rm')
    .action(async (id: string, options: Options) => {
      const client = await connect(session, options)
      const answer = await client.request<{ id: string }>('DELETE', path`/webhooks/${id}`)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Deleted ${answer.id}.\n`)
    })
}
