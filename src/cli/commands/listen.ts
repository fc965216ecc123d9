import { UsageError } from '../../errors.ts'
import { EVENT_NAMES, type EventName } from '../../resources/events/names.ts'
import { action, jsonLines } from '../command.ts'
import { flag, textOption } from '../options.ts'
import { orOnlyInstance } from '../session.ts'

/** `berth listen` */
export const listenCommand = action({
  usage: 'listen',
  summary: 'show events as they come, and forward them to a URL of this machine',
  description:
    'Shows every event of the running instance, and forwards it, signed, to a URL of this machine.',
  access: 'control',
  json: jsonLines('event'),
  options: {
    forwardTo: textOption('URL', 'where each event is sent to, such as localhost:3000/webhooks'),
    events: textOption('EVENTS', "these only: names with commas between them, 'task.*' for a group"),
    account: textOption('ACCOUNT', 'those of one account only'),
    printSecret: flag('print the signing secret alone, and end'),
  },
  help: `
Each event is sent as a webhook would be: the same body, signed in the same way (Standard Webhooks), one after the
other. The secret stays the same for an instance. What the receiver does not take within 15 s, or answers with anything
but 2xx, is shown and passed over; a redirect is not followed. Where the instance is stopped and started or reset, it
goes on with what comes next. Webhooks are not needed for it, nor --allow-local-webhooks.

Examples:
  berth listen --forward-to localhost:3000/webhooks
  berth listen --forward-to 3000/webhooks --events 'task.*,project.ready'
  echo "WEBHOOK_SECRET=$(berth listen --print-secret)" >> .env
  berth listen --json | jq 'select(.type == "event").data'
`,
  async run({ session, options, idOf }) {
    const { listenToEvents, openConnection } = await import('../listen/listen.ts')
    const where = await orOnlyInstance(session.context, options, 'control')
    if (options.printSecret) {
      await session.context.stdout.write(`${(await openConnection(session, where)).secret}\n`)
      return 0
    }
    const target = options.forwardTo === undefined ? undefined : parseTarget(options.forwardTo)
    const events = parseEvents(options.events)
    const account = await idOf('ACCOUNT', options.account)
    return listenToEvents(session, where, { target, events, account, json: options.json })
  },
})

/**
 * Parses the target of forwarded events: a URL, or a shortened one on this machine, such as `localhost:3000/hook`,
 * `3000/hook` or `3000`.
 *
 * @throws UsageError
 */
export function parseTarget(given: string): string {
  const url = URL.parse(withScheme(given))
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.port === '0') {
    throw new UsageError(
      `--forward-to must look like http://localhost:3000/hook, localhost:3000/hook or 3000/hook, got ${JSON.stringify(given)}.`,
    )
  }
  if (url.username !== '' || url.password !== '')
    throw new UsageError('--forward-to must have no credentials in the URL.')
  url.hash = ''
  return url.href
}

function withScheme(given: string): string {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(given)) return given
  return /^:?\d+(?:\/|$)/.test(given) ? `http://localhost:${given.replace(/^:/, '')}` : `http://${given}`
}

/**
 * Parses a list of event names separated by commas, in which `task.*` means a group. Returns all events for
 * undefined or an empty list.
 *
 * @throws UsageError for an unknown name
 */
function parseEvents(given: string | undefined): ReadonlySet<EventName> {
  const names = given?.split(',').flatMap((name) => name.trim() || [])
  if (names === undefined || names.length === 0) return new Set(EVENT_NAMES)
  return new Set(names.flatMap(matchingEvents))
}

function matchingEvents(given: string): EventName[] {
  const found = EVENT_NAMES.filter((name) =>
    given.endsWith('.*') ? name.startsWith(given.slice(0, -1)) : name === given,
  )
  if (found.length > 0) return found
  throw new UsageError(
    `There is no event ${JSON.stringify(given)}. The events are ${EVENT_NAMES.join(', ')}; task.* names all of a group.`,
  )
}
