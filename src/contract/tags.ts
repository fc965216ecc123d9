/** The groups of the API's operations in display order: name, description, and the nouns of operation ids. */
const API_GROUPS = [
  [
    'Servers',
    'Sized compute servers: provision, look at, control and remove them, and run commands.',
    ['servers', 'exec'],
  ],
  [
    'Terminals',
    'Terminals of a server: programs with a screen and a keyboard, which any number of viewers attach to.',
    ['terminals'],
  ],
  ['Usage', 'What servers use now and what they may, and the credits of the account by day.', ['usage']],
  ['Processes', 'What runs on a server.', ['processes']],
  ['Files', "The files of a server's workspace.", ['files']],
  ['Deployments', "A server's workspace, published under a URL.", ['deployments']],
  ['Tasks', 'Goals that an agent works on inside a server.', ['tasks']],
  ['Builds', 'Structured builds: plan, scaffold, implement, install, build, deploy.', ['builds']],
  [
    'Projects',
    'Workspaces with an app inside a server, each with a slug and a URL of its own.',
    ['projects', 'templates'],
  ],
  [
    'Secrets',
    'Environment variables of servers and projects; their values are never read back.',
    ['secrets', 'projectSecrets'],
  ],
  ['API keys', 'The keys of the account. They need a key that reaches the whole account.', ['keys']],
  [
    'Webhooks',
    'Subscriptions to signed events. They need a key that reaches the whole account.',
    ['webhooks'],
  ],
  ['Changes', 'One stream of everything that changes, in place of asking again and again.', ['changes']],
] as const satisfies readonly Group[]

/** The groups of the control API's operations. Those without a noun belong to the instance. */
const CONTROL_GROUPS = [
  [
    'Instance',
    'The instance as a whole: what runs, what is enforced, back to the start.',
    ['health', 'ready', 'reset'],
  ],
  ['Waiting', 'Outcomes to wait for, so that no test has to sleep.', ['wait']],
  [
    'Accounts',
    'Accounts with a plan, a budget and a key each, so that parallel tests do not meet.',
    ['accounts'],
  ],
  ['Sign-in', 'Links that sign a browser in.', ['signInLinks']],
  ['Clock', 'The one clock that metering, expiry, retries, idle timeout and months go by.', ['clock']],
  ['Faults', 'Failures, delays and broken connections that are provoked.', ['faults']],
  ['Server networks', 'What one server may reach, and what was refused.', ['serverNetwork']],
  ['Server faults', 'What goes wrong inside one server.', ['serverFaults']],
  ['Scenarios', 'What the scripted agent does about which goals.', ['scenarios']],
  ['Tasks', 'What steers tasks from outside.', ['tasks']],
  ['Changes', 'One stream of everything that happens, in place of asking again and again.', ['changes']],
  ['Requests', 'The journal of requests to the API, with their answers.', ['requests']],
  ['Events', 'All that was emitted, and synthetic events.', ['events']],
  ['Deliveries', 'What was sent to webhooks, and what came back.', ['deliveries']],
  ['Inbox', 'Receivers to point webhooks at.', ['inbox']],
  ['Snapshots', 'The whole state, kept under a name.', ['snapshots']],
  ['Fixtures', 'What there is at the start.', ['fixtures']],
] as const satisfies readonly Group[]

type Group = readonly [name: string, description: string, nouns: readonly string[]]

const described = (groups: readonly Group[]): Readonly<Record<string, string>> =>
  Object.fromEntries(groups.map(([name, description]) => [name, description]))

/** Descriptions of the API's groups, by name. */
export const API_TAGS = described(API_GROUPS)

/** Descriptions of the control API's groups, by name. */
export const CONTROL_TAGS = described(CONTROL_GROUPS)

/** Returns the group of an operation by its id: `servers.create` → "Servers", `control.clock.move` → "Clock". */
export function tagOf(id: string): string {
  const parts = id.split('.')
  const isControl = parts[0] === 'control'
  const noun = parts[isControl ? 1 : 0] ?? ''
  const groups: readonly Group[] = isControl ? CONTROL_GROUPS : API_GROUPS
  const group = groups.find(([, , nouns]) => nouns.includes(noun))
  if (!group) throw new Error(`No group of operations has the noun of "${id}".`)
  return group[0]
}
