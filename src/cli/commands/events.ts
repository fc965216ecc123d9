import { type Command, Option } from 'commander'
import { EVENT_NAMES } from '../../resources/events/names.ts'
import type { EmittedEvent } from '../../testing/api/events.ts'
import type { Client } from '../client.ts'
import type { ConnectionOptions } from '../instance.ts'
import { untilInterrupted } from '../interrupt.ts'
import { paint, printable } from '../output.ts'
import { connectControl, printJson, type Session, withControl } from '../session.ts'
import { wholeNumber } from '../whole-number.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  follow?: boolean
  event?: string
  account?: string
  after?: string
  limit?: number
}

const MORE = `
Examples:
  berth events --event task.completed --limit 1     the latest one
  berth events -f --json | jq .data                 what comes, for programs
`

/** Adds `events`. */
export function registerEvents(program: Command, session: Session): void {
  withControl(program.command('events'))
    .summary('what was emitted, with or without a webhook')
    .description(
      'Prints the events that an instance emitted, the latest last, whether a webhook takes them or not.',
    )
    .option('-f, --follow', 'go on with what comes, until Ctrl-C')
    .addOption(new Option('--event <EVENT>', 'those of one name').choices(EVENT_NAMES))
    .option('--account <ACCOUNT>', 'those of one account')
    .option('--after <ID>', 'only what came after the event of this id')
    .option('--limit <N>', 'at most so many, the latest (default 100)', wholeNumber)
    .option('--json', 'one line of JSON for each event, for programs')
    .addHelpText('after', MORE)
    .action(async (options: Options) => {
      const client = await connectControl(session, options)
      const { follow, event, account, after, limit } = options
      const query = {
        ...(event === undefined ? {} : { event }),
        ...(account === undefined ? {} : { account_id: account }),
        ...(after === undefined ? {} : { after }),
      }
      if (follow) {
        session.exitCode = await untilInterrupted((signal) =>
          goOn(session, client, { ...query, ...(limit ? { limit: String(limit) } : {}) }, options, signal),
        )
        return
      }
      const asked = { ...query, limit: String(limit ?? 100) }
      const answer = await client.request<{ events: EmittedEvent[] }>('GET', '/_berth/events', {
        query: asked,
      })
      for (const one of answer.events.reverse()) await show(session, one, options)
    })
}

async function goOn(
  session: Session,
  client: Client,
  query: Record<string, string>,
  options: Options,
  signal: AbortSignal,
): Promise<number> {
  for await (const { data } of client.events('GET', '/_berth/events', { query, signal }))
    await show(session, JSON.parse(data), options)
  return 0
}

function show(session: Session, event: EmittedEvent, { json }: Options): Promise<void> {
  if (json) return printJson(session, event)
  const { stdout } = session.terminal
  const time = paint(stdout, 'dim', event.created_at)
  const name = paint(stdout, 'bold', event.event)
  return stdout.write(`${time}  ${event.id}  ${name}  ${printable(JSON.stringify(event.data))}\n`)
}
