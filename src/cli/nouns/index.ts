import type { Noun } from '../command.ts'
import type { NameSources } from '../names.ts'
import { accountsNoun } from './accounts.ts'
import { agentsNoun } from './agents.ts'
import { browsersNoun } from './browsers.ts'
import { buildsNoun } from './builds.ts'
import { clockNoun } from './clock.ts'
import { deliveriesNoun } from './deliveries.ts'
import { deploymentsNoun } from './deployments.ts'
import { eventsNoun } from './events.ts'
import { executionsNoun } from './executions.ts'
import { faultsNoun } from './faults.ts'
import { filesNoun } from './files.ts'
import { fixturesNoun } from './fixtures.ts'
import { inboxNoun } from './inbox.ts'
import { keysNoun } from './keys.ts'
import { processesNoun } from './processes.ts'
import { programsNoun } from './programs.ts'
import { projectsNoun } from './projects.ts'
import { scenariosNoun } from './scenarios.ts'
import { secretsNoun } from './secrets.ts'
import { serversNoun } from './servers.ts'
import { snapshotsNoun } from './snapshots.ts'
import { tasksNoun } from './tasks.ts'
import { templatesNoun } from './templates.ts'
import { terminalsNoun } from './terminals.ts'
import { usageNoun } from './usage.ts'
import { webhooksNoun } from './webhooks.ts'

/** The nouns of the API, in the order of the help text. */
export const API_NOUNS: readonly Noun[] = [
  serversNoun,
  executionsNoun,
  terminalsNoun,
  processesNoun,
  usageNoun,
  filesNoun,
  tasksNoun,
  buildsNoun,
  projectsNoun,
  templatesNoun,
  secretsNoun,
  deploymentsNoun,
  keysNoun,
  programsNoun,
  browsersNoun,
  webhooksNoun,
  agentsNoun,
]

/** The nouns of the control API, in the order of the help text. */
export const CONTROL_NOUNS: readonly Noun[] = [
  snapshotsNoun,
  faultsNoun,
  accountsNoun,
  clockNoun,
  scenariosNoun,
  eventsNoun,
  deliveriesNoun,
  inboxNoun,
  fixturesNoun,
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
