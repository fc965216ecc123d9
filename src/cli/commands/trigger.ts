import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { EVENT_NAMES, type EventName } from '../../resources/events/names.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import { MAX_JSON_DEPTH, parseWithLoss } from '../../runtime/validation/json-faults.ts'
import { action } from '../command.ts'
import { readLocal } from '../local-file.ts'
import { DELIVERY_STYLES } from '../nouns/deliveries.ts'
import { textOption } from '../options.ts'
import { count, paint } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { type Column, table } from '../table.ts'

type Delivery = NonNullable<ResponseOf<'control.instance.wait'>['deliveries']>[number]

/** Milliseconds to wait for the first attempts. Each takes at most 15 s. */
const WAIT_MS = 20_000

const COLUMNS: readonly Column<Delivery>[] = [
  { heading: 'DELIVERY', cell: ({ id }) => id },
  { heading: 'WEBHOOK', cell: (one) => one.webhook_id },
  { heading: 'STATUS', cell: ({ status }) => status, style: ({ status }) => DELIVERY_STYLES[status] },
  { heading: 'MS', cell: ({ attempts }) => String(Math.round(attempts.at(-1)?.ms ?? 0)), right: true },
  { heading: 'URL', cell: ({ url }) => url },
  { heading: 'PROBLEM', cell: ({ attempts }) => attempts.at(-1)?.error ?? '', style: () => 'dim' },
]

const NO_WEBHOOK =
  'No webhook takes it. "berth listen" shows it, and "berth webhooks create URL" makes one.\n'

/** `berth trigger` */
export const trigger = action({
  usage: 'trigger <EVENT>',
  operations: ['control.events.emit'],
  summary: 'emit an event, as if it had happened',
  description: 'Emits an event, as if it had happened, and says what became of its deliveries.',
  access: 'control',
  arguments: { EVENT: { description: `which event: ${EVENT_NAMES.join(', ')}`, choices: EVENT_NAMES } },
  options: {
    payload: textOption('JSON', 'what it carries: a JSON object, @FILE, or - for standard input'),
    account: textOption('ACCOUNT', 'the account that it is emitted for (default the first)'),
  },
  help: `
Without --payload the event carries the example of the documents. Nothing else happens: no task is made, nothing runs.
It waits until each webhook that takes the event has been tried once.

Examples:
  berth trigger quota.cap_reached
  berth trigger deployment.live --payload '{"url": "https://example.com/"}'
  berth trigger task.failed --payload @event.json --json
`,
  async run({ session, args: [event], options, connect, idOf, print }) {
    checkDirectory(options.data)
    const data = await readPayload(options.payload, session.context)
    const client = await connect()
    const account_id = await idOf('ACCOUNT', options.account)
    const body = { event: event as EventName, data, account_id }
    const emitted = await client.call('control.events.emit', { body })
    const { deliveries = [] } = await client.call('control.instance.wait', {
      query: { deliveries: emitted.id, timeout_ms: WAIT_MS },
    })
    await print({ ...emitted, deliveries }, (_, { out }) => {
      const head = `Emitted ${event}: ${emitted.id}\n`
      if (deliveries.length === 0) return head + paint(out, 'dim', NO_WEBHOOK)
      const takers = count(deliveries.length, 'webhook')
      const verb = deliveries.length === 1 ? 'takes' : 'take'
      return `${head}\n${takers} ${verb} it:\n${table(out, COLUMNS, deliveries)}`
    })
  },
})

/**
 * Refuses a payload given as `--data`, which names the data directory.
 *
 * @throws UsageError
 */
function checkDirectory(data: string | undefined): void {
  if (data === undefined || !/^\s*[{[@]|^-$/.test(data)) return
  throw new UsageError(
    `--data names the data directory. Give what the event carries with --payload: berth trigger EVENT --payload ${/^[@-]/.test(data) ? data : "'JSON'"}`,
  )
}

/**
 * Reads the payload of an event: a JSON object, `@FILE` for one in a file, or `-` for one on standard input.
 *
 * @throws UsageError if it is no JSON object; CommandError if the file cannot be read
 */
async function readPayload(
  given: string | undefined,
  { cwd, stdin }: ProcessContext,
): Promise<Record<string, unknown> | undefined> {
  if (given === undefined) return undefined
  const fromFile = given.startsWith('@')
  const where = fromFile ? given.slice(1) : given === '-' ? 'Standard input' : '--payload'
  const bytes = fromFile
    ? await readLocal(resolve(cwd, where), where)
    : given === '-'
      ? await stdin.bytes()
      : null
  const json = bytes === null ? given : new TextDecoder().decode(bytes)
  const value = parseJson(json, where)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new UsageError(`${where} must be a JSON object, such as {"server_id": "srv_1"}.`)
}

function parseJson(json: string, where: string): unknown {
  let parsed: ReturnType<typeof parseWithLoss>
  try {
    parsed = parseWithLoss(json)
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    throw new UsageError(
      `${where} is not valid JSON: ${cause}. Give an object such as '{"server_id": "srv_1"}', @FILE, or - for standard input.`,
    )
  }
  if (parsed === null)
    throw new UsageError(`${where} is nested too deeply: expected at most ${MAX_JSON_DEPTH} levels.`)
  // Sent as berth reads it, which would not be what was given.
  if (parsed.loss !== null) throw new UsageError(`${where}, ${parsed.loss.sentence()}`)
  return parsed.value
}
