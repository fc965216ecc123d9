/** The group of the requests to subscribers. Generators make a class of each group: it is not that of the operations. */
export const WEBHOOK_EVENTS_TAG = 'Webhook events'

/** The groups of the API's operations in display order: name, description, the nouns of operation ids, and a page of the guide. */
const API_GROUPS = [
  [
    'Servers',
    'Sized compute servers: provision, look at, control and remove them, and run commands.',
    ['servers', 'exec'],
    'api',
  ],
  [
    'Executions',
    'Commands of a server that run without a request that waits for them, and their output.',
    ['executions'],
    'executions',
  ],
  [
    'Terminals',
    'Terminals of a server: programs with a screen and a keyboard, which up to 50 viewers attach to.',
    ['terminals'],
    'terminals',
  ],
  [
    'Usage',
    'What servers use now and what they may, and the credits of the account by day.',
    ['usage'],
    'executions',
  ],
  ['Processes', 'What runs on a server.', ['processes'], 'executions'],
  ['Files', "The files of a server's workspace.", ['files'], 'api'],
  ['Deployments', "A server's workspace, published under a URL.", ['deployments'], 'projects'],
  ['Tasks', 'Goals that an agent works on inside a server.', ['tasks'], 'tasks'],
  ['Builds', 'Structured builds: plan, scaffold, implement, install, build, deploy.', ['builds'], 'tasks'],
  [
    'Projects',
    'Workspaces with an app inside a server, each with a slug and a URL of its own.',
    ['projects', 'templates'],
    'projects',
  ],
  [
    'Secrets',
    'Environment variables of servers and projects; their values are never read back.',
    ['secrets', 'projectSecrets'],
    'projects',
  ],
  ['Account', 'The account of a key.', ['account'], 'accounts'],
  [
    'API keys',
    'The keys of the account. They need a key that reaches the whole account.',
    ['keys'],
    'access',
  ],
  [
    'Programs and browsers',
    'Who has access to the account beside its keys. They need a key that reaches the whole account.',
    ['programs', 'browsers'],
    'access',
  ],
  [
    'Webhooks',
    'Subscriptions to signed events. They need a key that reaches the whole account.',
    ['webhooks'],
    'webhooks',
  ],
  [WEBHOOK_EVENTS_TAG, 'The requests that berth sends to subscribers.', [], 'webhooks'],
  [
    'Changes',
    'One stream of everything that changes, in place of asking again and again.',
    ['changes'],
    'changes',
  ],
] as const satisfies readonly Group[]

/** The groups of the control API's operations. */
const CONTROL_GROUPS = [
  [
    'Instance',
    'The instance as a whole: what runs, what is enforced, back to the start.',
    ['health', 'ready', 'instance'],
    'snapshots',
  ],
  ['Waiting', 'Outcomes to wait for, so that no test has to sleep.', ['instance.wait'], 'testing'],
  [
    'Accounts',
    'Accounts with a plan, a budget and a key each, so that parallel tests do not meet.',
    ['accounts'],
    'accounts',
  ],
  ['Sign-in', 'Links that sign a browser in.', ['signInLinks'], 'access'],
  [
    'Clock',
    'The one clock that metering, expiry, retries, idle timeout and months go by.',
    ['clock'],
    'accounts',
  ],
  ['Faults', 'Failures, delays and broken connections that are provoked.', ['faults'], 'faults'],
  ['Servers', 'Single servers, carried with their files.', ['servers'], 'engines'],
  ['Server networks', 'What one server may reach, and what was refused.', ['serverNetwork'], 'network'],
  ['Server faults', 'What goes wrong inside one server.', ['serverFaults'], 'faults'],
  ['Scenarios', 'What the scripted agent does about which goals.', ['scenarios'], 'scenarios'],
  ['Tasks', 'What steers tasks from outside.', ['tasks'], 'scenarios'],
  [
    'Changes',
    'One stream of everything that happens, in place of asking again and again.',
    ['changes'],
    'changes',
  ],
  ['Requests', 'The journal of requests to the API, with their responses.', ['requests'], 'journal'],
  ['Events', 'All that was emitted, and synthetic events.', ['events'], 'webhooks'],
  ['Deliveries', 'What was sent to webhooks, and what came back.', ['deliveries'], 'webhooks'],
  ['Local webhooks', 'Whether webhooks may lead to this machine.', ['localWebhooks'], 'webhooks'],
  ['Inbox', 'Receivers to point webhooks at.', ['inbox'], 'webhooks'],
  ['Snapshots', 'The whole state, kept under a name.', ['snapshots'], 'snapshots'],
  ['Fixtures', 'What there is at the start.', ['fixtures'], 'fixtures'],
] as const satisfies readonly Group[]

type Group = readonly [name: string, description: string, nouns: readonly string[], guide: string]

/** What documents say of a group of operations. */
export interface TagFacts {
  readonly description: string
  /** The page of the guide that shows how its operations are used, by name. */
  readonly guide: string
}

const described = (groups: readonly Group[]): Readonly<Record<string, TagFacts>> =>
  Object.fromEntries(groups.map(([name, description, , guide]) => [name, { description, guide }]))

/** The API's groups, by name. */
export const API_TAGS = described(API_GROUPS)

/** The control API's groups, by name. */
export const CONTROL_TAGS = described(CONTROL_GROUPS)

/** Returns the group of an operation by its id: `servers.create` → "Servers", `control.clock.move` → "Clock". */
export function tagOf(id: string): string {
  const parts = id.split('.')
  const isControl = parts[0] === 'control'
  const noun = parts[isControl ? 1 : 0] ?? ''
  const groups: readonly Group[] = isControl ? CONTROL_GROUPS : API_GROUPS
  // One operation may have a group of its own.
  const groupWith = (name: string) => groups.find(([, , nouns]) => nouns.includes(name))
  const group = groupWith(parts.slice(-2).join('.')) ?? groupWith(noun)
  if (!group) throw new Error(`No group of operations has the noun of "${id}".`)
  return group[0]
}
