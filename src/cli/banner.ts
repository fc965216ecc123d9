import type { IsolationName } from '../compute/compute.ts'
import type { ReadyInfo } from '../instance/start.ts'
import { shellQuote } from '../runtime/shell-quote.ts'
import { findDataDirectory } from './find-instance.ts'
import { facts, paint } from './output.ts'
import { type ProcessContext, writeLineSync } from './process-context.ts'

/** Says what an isolation does; of bubblewrap and of an engine without the network, which differs between machines. */
const ISOLATION_MEANS: Record<IsolationName, string> = {
  bubblewrap: 'each server has its own files, users and processes',
  landlock: "each server reaches its own files only; processes and network are the machine's",
  'seatbelt (untested)':
    "each server reaches its own files only, if the profile does what it says; processes and network are the machine's",
  none: 'NOT isolated: commands run with your rights on your files',
  container: 'each server is a container of the Docker engine',
  pod: 'each server is a pod of the Kubernetes cluster',
}

/** Shown instead of the first key if that was deleted. */
const NO_KEY = 'the first one was deleted. Start once with --api-key sk_live_… to keep another here'

/** Parts of a banner that `ReadyInfo` does not have. */
interface BannerParts {
  /** How to stop the instance, as a sentence. */
  stop: string
  /** Path of the instance's log file, if it has one. */
  log?: string
  /** Whether each server has its own network; left out if that is not known here. */
  network?: 'own' | 'shared'
}

function isolationMeans({ isolation }: ReadyInfo, { network }: BannerParts): string {
  const means = ISOLATION_MEANS[isolation]
  if (isolation !== 'bubblewrap' || network === undefined) return means
  return network === 'own' ? `${means}, and its own network` : `${means}; the network is the machine's`
}

/** Most ids of kept directories that the banner names. @bound reader */
const MOST_KEPT = 3

const keptMeans = (kept: readonly string[]): string =>
  `${kept.slice(0, MOST_KEPT).join(', ')}${kept.length > MOST_KEPT ? ` and ${kept.length - MOST_KEPT} more` : ''}: directories of servers that the database does not name; see "berth doctor --leaks"`

/** Prints on stdout that an instance is ready: one line of JSON with `json`, else a banner. */
export async function printReady(
  json: boolean,
  ready: ReadyInfo,
  context: ProcessContext,
  parts: BannerParts,
): Promise<void> {
  if (json) writeLineSync(JSON.stringify({ event: 'ready', ...ready }))
  else await context.stdout.write(banner(ready, context, parts))
}

/** Returns what a person sees when an instance is ready. */
function banner(ready: ReadyInfo, { stdout, env, cwd }: ProcessContext, parts: BannerParts): string {
  const { version, base_url, mcp_url, docs_url, sign_in_url, api_key, data_dir, isolation, kept } = ready
  const { stop, log } = parts
  // Commands find it by the working directory.
  const isFound = findDataDirectory(undefined, env, cwd) === data_dir
  const lines = facts(stdout, [
    ['API', base_url],
    ['Docs', docs_url],
    ['MCP', `${mcp_url}  (the address for coding assistants)`],
    ['Control', `${base_url}/_berth/docs, for tests; "berth env" prints its token`],
    ['API key', api_key ?? NO_KEY],
    ['Sign in', `${sign_in_url}  (once, within an hour)`],
    ['Data', data_dir],
    ['Isolation', `${isolation}: ${isolationMeans(ready, parts)}`],
    ...(log === undefined ? [] : [['Log', log] as const]),
    ...(kept.length === 0 ? [] : [['Kept', keptMeans(kept)] as const]),
  ])
  return [
    `${paint(stdout, 'bold', `berth ${version}`)} is ready after ${Math.round(ready.started_in_ms)} ms.\n\n`,
    lines.replace(/^/gm, '  ').trimEnd(),
    '\n\n  In another terminal:\n',
    ...(isFound ? [] : [`    export BERTH_DATA=${shellQuote([data_dir])}\n`]),
    '    berth servers create              provision a server\n',
    '    berth deploy .                    put a directory online on it\n\n',
    `  ${stop}\n`,
  ].join('')
}
