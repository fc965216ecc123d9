import type { InitPhase, Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { followWork, pollUntil } from '../follow.ts'
import { ALL_LINES, followLog, type LogLine, logText, printLogEnd, projectLog } from '../log.ts'
import { paint, printable, printResult } from '../output.ts'
import { PhaseReport } from '../phases.ts'
import type { OutputStream } from '../process-context.ts'
import type { CliSession } from '../session.ts'
import { StatusLine } from '../status-line.ts'
import { isWorker, missingVariablesText, projectAddresses, reportWarnings } from './report.ts'

/** Exit code if the bring-up waits for variables. */
export const AWAITS_SECRETS = 3

/** Longest wait for the end of the log after the bring-up, in milliseconds. */
const MAX_WAIT_MS = 1000

/** Phases that do not change without a request. */
const FINAL_PHASES: ReadonlySet<InitPhase | null> = new Set([null, 'awaiting_secrets', 'ready', 'failed'])

/** How to follow a bring-up. */
export interface BringUpFollowing {
  /** Prints only the final project, and on stderr the reason if it is not ready. */
  json?: boolean | undefined
  /** ISO 8601. Earlier lines of the log belong to earlier runs. */
  since: string
  /** The command to run once the code is fixed; by default `berth projects init`. */
  remedy?: string
  /** Fails if berth warns of the app's pages. */
  strict?: true | undefined
}

/**
 * Follows a bring-up to its end, with phases and log on stderr and the outcome on stdout. Ctrl-C ends the following,
 * not the bring-up.
 *
 * @returns the exit code: 0 if the app is ready, 1 if it failed or has warnings that count, AWAITS_SECRETS if variables
 *   are missing
 */
export async function followBringUp(
  session: CliSession,
  client: Client,
  project: Project,
  { json = false, since, remedy = `berth projects init ${project.id}`, strict }: BringUpFollowing,
): Promise<number> {
  const { id, slug } = project
  const hint = `the bring-up of ${slug} goes on. Look at it with: berth projects logs ${id} -f\n`
  return followWork(session.context.stderr, hint, async (signal) => {
    const final = json
      ? await waitUntilFinal(client, project, signal)
      : await watchBringUp(session, client, project, { since, signal })
    return printOutcome(session, client, final, { json, remedy, strict })
  })
}

/** What `watchBringUp` shows, and its listeners. */
interface WatchOptions {
  /** Where the current phase is shown, below what the session prints; by default one of its own. */
  status?: StatusLine | undefined
  /** Name of the project on that line. */
  label?: string | undefined
  /** ISO 8601. Earlier lines of the log belong to earlier runs. Null: those before the run's first phase do. */
  since: string | null
  signal: AbortSignal
  /** Called with each line of the log that has been read, shown or not. */
  onLine?: (line: LogLine) => void
  /** Called with each phase in the log. */
  onPhase?: (phase: string) => void
}

/**
 * Shows the log of a bring-up, which names each phase in its place, until it reaches a final one.
 *
 * @throws the signal's reason if it aborts
 */
export async function watchBringUp(
  { context }: Pick<CliSession, 'context'>,
  client: Client,
  project: Project,
  { since, signal: interrupted, onLine = () => {}, onPhase = () => {}, ...shown }: WatchOptions,
): Promise<Project> {
  using own = new StatusLine(context.stderr)
  const stderr = shown.status === undefined ? own.above(context.stderr) : context.stderr
  const phases = new PhaseReport(stderr, shown.status ?? own, shown.label)
  const done = new AbortController()
  const signal = AbortSignal.any([interrupted, done.signal])
  /** Resolves at a line that names a final phase. */
  const ended = Promise.withResolvers<void>()
  let hasBegun = false
  let shownRun: string | undefined
  const show = async (): Promise<void> => {
    for await (const line of followLog(projectLog(client, project.id), { tail: ALL_LINES }, signal)) {
      const { phase, run } = line
      onLine(line)
      // Another bring-up has taken the place of this one.
      if (hasBegun && phase && shownRun !== undefined && run !== shownRun) await phases.end(false)
      if (phase) shownRun = run
      hasBegun ||= since === null ? run === project.init_run_id : line.at >= since
      if (!hasBegun) continue
      if (!phase) await stderr.write(logText(stderr, line))
      else if (FINAL_PHASES.has(phase as InitPhase)) {
        await phases.end(phase !== 'failed')
        await stderr.write(`${paint(stderr, 'bold', line.text)}\n`)
        ended.resolve()
      } else await phases.begin(phase, paint(stderr, 'bold', line.text))
      if (phase) onPhase(phase)
    }
  }
  const logShown = show().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  const read = () => client.call('projects.get', { params: { projectId: project.id }, signal })
  // Asks at once when the log says so, and now and then, because a slow reader may miss lines.
  const finished = pollUntil(read, isFinal, signal, ended.promise)
  try {
    const final = await Promise.race([finished, logShown.then(() => finished)])
    // An app may log so fast that the line with the last phase is left out.
    await Promise.race([ended.promise, Bun.sleep(MAX_WAIT_MS), logShown])
    return final
  } finally {
    done.abort()
    await logShown.catch(() => {})
  }
}

/** Reports whether a bring-up is over, or waits for variables. */
export const isFinal = ({ init_phase: phase }: Project): boolean => FINAL_PHASES.has(phase)

/** Resolves to the project when its bring-up reaches a final phase. */
export function waitUntilFinal(client: Client, { id }: Project, signal: AbortSignal): Promise<Project> {
  const read = () => client.call('projects.get', { params: { projectId: id }, signal })
  return pollUntil(read, isFinal, signal)
}

async function printOutcome(
  { context: { stdout, stderr } }: CliSession,
  client: Client,
  project: Project,
  { json, remedy, strict }: { json: boolean; remedy: string; strict?: true | undefined },
): Promise<number> {
  const { init_phase: phase } = project
  await printResult(stdout, json, project, () =>
    phase === 'failed' || phase === 'awaiting_secrets' ? '' : readyText(client, project),
  )
  if (phase === 'awaiting_secrets') {
    await stderr.write(await missingVariablesText(client, project))
    return AWAITS_SECRETS
  }
  if (phase !== 'failed') return reportWarnings(stderr, project.warnings, { isShown: !json, strict })
  const next = `Fix it, then run: ${remedy}\n`
  throw await bringUpError(stderr, client, project, { next, isLogShown: !json })
}

/**
 * Returns the failure of a bring-up. Prints the end of the log before, unless it was shown as it came.
 *
 * @param next what a person can do now, as sentences with the space behind them
 */
export async function bringUpError(
  stderr: OutputStream,
  client: Client,
  { id, slug }: Project,
  { next, isLogShown }: { next: string; isLogShown: boolean },
): Promise<CommandError> {
  if (!isLogShown) await printLogEnd(stderr, projectLog(client, id))
  return new CommandError(
    `${slug} could not be brought up; the log above says why. ${next}The whole log: berth projects logs ${slug}`,
  )
}

const readyText = (client: Client, project: Project): string =>
  isWorker(project)
    ? `${printable(project.slug)} is ready: a worker, which has no URL.\n`
    : project.url === null
      ? `${project.slug} is ready, and private. Give it a URL with: berth projects update ${project.id} --public\n`
      : `${printable(project.slug)} is ready at ${projectAddresses(client, project)}\n`
