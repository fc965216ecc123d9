import type { AppLog } from '../app-runtime/log/log.ts'
import type { AppPlan } from '../app-runtime/plan.ts'
import type { Upstream } from '../sites/upstream.ts'
import { checkPages } from './check.ts'
import { visitorOf } from './visitor.ts'

/** An app that has come up. */
interface AppThatIsUp {
  readonly plan: AppPlan
  /** What responds for it. */
  readonly upstream: Upstream
  /** Its own URL, whether it is public or not. */
  readonly url: string
  /** First label of its other host name, `SLUG.localhost`; null for none. */
  readonly slug: string | null
  readonly log: AppLog
}

/**
 * Asks an app for its pages, and logs and returns what is wrong with them.
 *
 * @param signal ends that early
 */
export async function findWarnings(
  { plan, upstream, url, slug, log }: AppThatIsUp,
  signal: AbortSignal,
): Promise<string[]> {
  const visit = visitorOf(upstream, new URL(url).host)
  if (visit === null) return []
  const { health, kind, start } = plan
  const isFiles = start.kind === 'files'
  const { warnings, notes } = await checkPages({ visit, url, slug, health, kind, isFiles, signal })
  for (const note of notes) log.append('berth', note)
  for (const warning of warnings) log.append('berth', `Warning: ${warning}`)
  return [...warnings]
}
