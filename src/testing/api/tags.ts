/** The groups of calls, by the noun in their operation ids, in the order in which the document shows them. */
const GROUPS = {
  instance: ['Instance', 'The instance as a whole: what runs, what is enforced, back to the start.'],
  wait: ['Waiting', 'Outcomes to wait for, so that no test has to sleep.'],
  accounts: [
    'Accounts',
    'Accounts with a plan, a budget and a key each, so that parallel tests do not meet.',
  ],
  signInLinks: ['Sign-in', 'Links that sign a browser in.'],
  clock: ['Clock', 'The one clock that metering, expiry, retries, idle timeout and months go by.'],
  faults: ['Faults', 'Failures, delays and broken connections that are provoked.'],
  serverFaults: ['Server faults', 'What goes wrong inside one server.'],
  scenarios: ['Scenarios', 'What the scripted agent does about which goals.'],
  tasks: ['Tasks', 'What steers tasks from outside.'],
  requests: ['Requests', 'The journal of requests to the API, with their answers.'],
  events: ['Events', 'All that was emitted, and synthetic events.'],
  deliveries: ['Deliveries', 'What was sent to webhooks, and what came back.'],
  inbox: ['Inbox', 'Receivers to point webhooks at.'],
  snapshots: ['Snapshots', 'The whole state, kept under a name.'],
  fixtures: ['Fixtures', 'What there is at the start.'],
} as const satisfies Record<string, readonly [name: string, description: string]>

const byNoun: ReadonlyMap<string, readonly [string, string]> = new Map(Object.entries(GROUPS))

/** Names of groups with their descriptions, for the document. */
export const CONTROL_TAGS: Readonly<Record<string, string>> = Object.fromEntries(byNoun.values())

/** `control.clock.move` → "Clock"; what has no noun of the table is about the instance. */
export const tagOf = (id: string): string => (byNoun.get(id.split('.')[1] ?? '') ?? GROUPS.instance)[0]
