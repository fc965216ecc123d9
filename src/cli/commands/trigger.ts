import { Argument, type Command } from 'commander'
import { EVENT_NAMES } from '../../resources/events/names.ts'
import type { DeliveryReport } from '../../resources/webhooks/history.ts'
import { count } from '../format.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, paint, type Style, table } from '../output.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

/** How long the first attempts are waited for: one takes 15 s at most. */
const WAIT_MS = 20_000

interface Options extends Omit<ConnectionOptions, 'data'> {
  /** What the event carries. */
  data?: string
  dataDir?: string
  account?: string
  json?: boolean
}

const MORE = `
Without --data the event carries the example of the documents. Nothing else happens: no task is made, nothing runs.
It waits until each webhook that takes the event has been tried once.

Examples:
  berth trigger quota.cap_reached
  berth trigger deployment.live --data '{"url": "https://example.com/"}'
  berth trigger task.failed --data @event.json --json
`

const STYLES: Readonly<Record<DeliveryReport['status'], Style>> = {
  delivered: 'green',
  pending: 'yellow',
  failed: 'red',
}

const COLUMNS: Column<DeliveryReport>[] = [
  { heading: 'DELIVERY', cell: ({ id }) => id },
  { heading: 'WEBHOOK', cell: (one) => one.webhook_id },
  { heading: 'STATUS', cell: ({ status }) => status, style: ({ status }) => STYLES[status] },
  { heading: 'MS', cell: ({ attempts }) => String(Math.round(attempts.at(-1)?.ms ?? 0)), right: true },
  { heading: 'URL', cell: ({ url }) => url },
  { heading: 'PROBLEM', cell: ({ attempts }) => attempts.at(-1)?.error ?? '', style: () => 'dim' },
]

/** Adds `trigger`. */
export function registerTrigger(program: Command, session: Session): void {
  const { stdout } = session.terminal
  withControl(withJson(program.command('trigger')), '--data-dir')
    .addArgument(new Argument('<EVENT>', `which event: ${EVENT_NAMES.join(', ')}`).choices(EVENT_NAMES))
    .summary('emit an event, as if it had happened')
    .description('Emits an event, as if it had happened, and says what became of its deliveries.')
    .option('--data <JSON>', 'what it carries: a JSON object, @FILE, or - for standard input')
    .option('--account <ACCOUNT>', 'the account that it is emitted for (default the first)')
    .addHelpText('after', MORE)
    .action(async (event: string, options: Options) => {
      const { data: given, dataDir, account, json, ...connection } = options
      const { readData } = await import('../json-input.ts')
      const data = await readData(given, session.terminal)
      const client = await connectControl(session, { ...connection, ...(dataDir ? { data: dataDir } : {}) })
      const emitted = await client.request<{ id: string }>('POST', '/_berth/events', {
        body: {
          event,
          ...(data ? { data } : {}),
          ...(account ? { account_id: account } : {}),
        },
      })
      const { deliveries } = await client.request<{ deliveries: DeliveryReport[] }>('GET', '/_berth/wait', {
        query: { deliveries: emitted.id, timeout_ms: String(WAIT_MS) },
      })
      if (json) return printJson(session, { ...emitted, deliveries })
      await stdout.write(`Emitted ${event}: ${emitted.id}\n`)
      if (deliveries.length === 0) return stdout.write(paint(stdout, 'dim', NOBODY))
      const takers = count(deliveries.length, 'webhook')
      await stdout.write(`\n${takers} ${deliveries.length === 1 ? 'takes' : 'take'} it:\n`)
      await stdout.write(table(stdout, COLUMNS, deliveries))
    })
}

const NOBODY = 'No webhook takes it. "berth listen" shows it, and "berth webhooks create URL" makes one.\n'
