import type { Noun } from '../command.ts'
import type { NameSources } from '../names.ts'
import { accounts } from './accounts.ts'
import { agents } from './agents.ts'
import { browsers } from './browsers.ts'
import { builds } from './builds.ts'
import { clock } from './clock.ts'
import { deliveries } from './deliveries.ts'
import { deployments } from './deployments.ts'
import { events } from './events.ts'
import { executions } from './executions.ts'
import { faults } from './faults.ts'
import { files } from './files.ts'
import { fixtures } from './fixtures.ts'
import { inbox } from './inbox.ts'
import { keys } from './keys.ts'
import { processes } from './processes.ts'
import { programs } from './programs.ts'
import { projects } from './projects.ts'
import { scenarios } from './scenarios.ts'
import { secrets } from './secrets.ts'
import { servers } from './servers.ts'
import { snapshots } from './snapshots.ts'
import { tasks } from './tasks.ts'
import { templates } from './templates.ts'
import { terminals } from './terminals.ts'
import { usage } from './usage.ts'
import { webhooks } from './webhooks.ts'

/** The nouns of the API, in the order of the help text. */
export const API_NOUNS: readonly Noun[] = [
  servers,
  executions,
  terminals,
  processes,
  usage,
  files,
  tasks,
  builds,
  projects,
  templates,
  secrets,
  deployments,
  keys,
  programs,
  browsers,
  webhooks,
  agents,
]

/** The nouns of the control API, in the order of the help text. */
export const CONTROL_NOUNS: readonly Noun[] = [
  snapshots,
  faults,
  accounts,
  clock,
  scenarios,
  events,
  deliveries,
  inbox,
  fixtures,
]

/** All nouns. */
export const NOUNS: readonly Noun[] = [...API_NOUNS, ...CONTROL_NOUNS]

/** What the placeholders of usages mean. */
export const NAME_SOURCES: NameSources = new Map(
  NOUNS.flatMap(({ names = [], commands: [first] }) =>
    names.map((source) => [
      source.placeholder,
      { ...source, access: first?.access === 'control' ? ('control' as const) : ('api' as const) },
    ]),
  ),
)
