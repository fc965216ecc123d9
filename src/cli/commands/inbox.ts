import { type Command, InvalidArgumentError } from 'commander'
import { UsageError } from '../../errors.ts'
import type { InboxSummary } from '../../testing/inbox/model.ts'
import { formatBytes } from '../format.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, table } from '../output.ts'
import { path } from '../path.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  limit?: number
  follow?: boolean
  all?: boolean
}

const COLUMNS: Column<InboxSummary>[] = [
  { heading: 'INBOX', cell: ({ name }) => name },
  { heading: 'ENTRIES', cell: (one) => String(one.count), right: true },
  { heading: 'SIZE', cell: ({ bytes }) => formatBytes(bytes), right: true },
  { heading: 'LAST', cell: (one) => one.last_received_at },
]

const MORE = `
An inbox is there as soon as something is posted to its URL, which takes no credential:
  berth serve --allow-local-webhooks
  berth webhooks create http://127.0.0.1:4747/_berth/inbox/mine
  berth trigger task.completed
  berth inbox show mine

"?respond=503,200" behind the URL answers the first attempt of each event with 503 and the next with 200, and
"?delay_ms=500" puts the answers off.
`

/** Adds `inbox` and what can be done with inboxes. */
export function registerInbox(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const inbox = program
    .command('inbox')
    .helpCommand(false)
    .summary('look at what was posted to the inboxes for webhooks')
    .description(
      'Looks at what was posted to the inboxes, with the verdict on each signature. Plain "berth inbox" lists them.',
    )
    .addHelpText('after', MORE)
  const add = (usage: string, description: string) =>
    withControl(withJson(inbox.command(usage).description(description)))

  add('list', 'list the inboxes, the one that got something last first').action(async (options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<{ inboxes: InboxSummary[] }>('GET', '/_berth/inbox')
    if (options.json) return printJson(session, answer)
    if (answer.inboxes.length === 0) {
      return stdout.write(`Nothing yet. Point a webhook at ${client.baseUrl}/_berth/inbox/NAME.\n`)
    }
    await stdout.write(table(stdout, COLUMNS, answer.inboxes))
  })

  add('show <INBOX>', 'show what an inbox got, oldest first')
    .option('--limit <N>', 'the last N entries only', wholeNumber)
    .option('-f, --follow', 'go on with what comes, until Ctrl-C; with --json one line each')
    .action(async (name: string, options: Options) => {
      const client = await connectControl(session, options)
      const { showInbox } = await import('../inbox/show.ts')
      session.exitCode = await showInbox(session, client, name, options)
    })

  add('clear [INBOX]', 'empty an inbox')
    .option('--all', 'empty all of them')
    .action(async (name: string | undefined, options: Options) => {
      if ((name === undefined) !== (options.all === true))
        throw new UsageError('Name the inbox to empty, or give --all for all of them.')
      const client = await connectControl(session, options)
      const target = name === undefined ? '/_berth/inbox' : path`/_berth/inbox/${name}`
      const answer = await client.request<{ removed: number }>('DELETE', target)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Removed ${answer.removed === 1 ? '1 entry' : `${answer.removed} entries`}.\n`)
    })
}

function wholeNumber(given: string): number {
  if (/^[1-9]\d{0,3}$/.test(given) && Number(given) <= 1_000) return Number(given)
  throw new InvalidArgumentError('Expected a whole number from 1 to 1000.')
}
