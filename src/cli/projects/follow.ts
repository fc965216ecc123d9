import type { InitPhase, Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { followWork, POLL_INTERVAL_MS, pollUntil } from '../follow.ts'
import { ALL_LINES, followLog, logText, printLogEnd, projectLog } from '../log.ts'
import { paint, printable, printJson } from '../output.ts'
import type { CliSession } from '../session.ts'
import { missingVariablesText } from './missing-variables.ts'

/** Exit code if the bring-up waits for variables. */
export const AWAITS_SECRETS = 3

/** Largest number of polls for further log lines after the bring-up. */
const MAX_POLLS = 5

/** Phases that do not change without a request. */
const FINAL_PHASES: ReadonlySet<InitPhase | null> = new Set([null, 'awaiting_secrets', 'ready', 'failed'])

/** How to follow a bring-up. */
export interface FollowOptions {
  /** Prints only the final project, and on stderr the reason if it is not ready. */
  json?: boolean | undefined
  /** ISO 8601. Earlier lines of the log belong to earlier runs. */
  since: string
}

/**
 * Follows a bring-up to its end, with phases and log on stderr and the outcome on stdout. Ctrl-C ends the following,
 * not the bring-up.
 *
 * @returns the exit code: 0 if the app is ready, 1 if it failed, AWAITS_SECRETS if variables are missing
 */
export async function followBringUp(
  session: CliSession,
  client: Client,
  project: Project,
  { json = false, since }: FollowOptions,
): Promise<number> {
  const { id, slug } = project
  const hint = `the bring-up of ${slug} goes on. Look at it with: berth projects logs ${id} -f\n`
  return followWork(session.context.stderr, hint, async (signal) => {
    const final = json
      ? await waitUntilFinal(client, project, signal)
      : await watch(session, client, project, since, signal)
    return json ? printOutcome(session, client, final) : printOutcomeText(session, client, final)
  })
}

/** Shows phases and log until the bring-up reaches a final phase. */
async function watch(
  session: CliSession,
  client: Client,
  project: Project,
  since: string,
  interrupted: AbortSignal,
): Promise<Project> {
  const { stderr } = session.context
  const done = new AbortController()
  const signal = AbortSignal.any([interrupted, done.signal])
  let lines = 0
  const show = async (): Promise<void> => {
    for await (const line of followLog(projectLog(client, project.id), ALL_LINES, signal)) {
      if (line.at < since) continue
      lines += 1
      await stderr.write(logText(stderr, line))
    }
  }
  const logShown = show().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  const finished = waitUntilFinal(client, project, signal, (phase) =>
    stderr.write(`${paint(stderr, 'bold', `→ ${phase}`)}\n`),
  )
  try {
    const final = await Promise.race([finished, logShown.then(() => finished)])
    // Waits for lines logged before the end. An app may log without end, so the wait is limited.
    for (let seen = -1, polls = 0; seen !== lines && polls < MAX_POLLS; polls += 1) {
      seen = lines
      await Bun.sleep(POLL_INTERVAL_MS)
    }
    return final
  } finally {
    done.abort()
    await logShown.catch(() => {})
  }
}

/** Resolves to the project when its bring-up reaches a final phase. */
async function waitUntilFinal(
  client: Client,
  { id }: Project,
  signal: AbortSignal,
  onPhase: (phase: InitPhase) => Promise<void> = async () => {},
): Promise<Project> {
  let last: InitPhase | null = null
  const read = async (): Promise<Project> => {
    const project = await client.call('projects.get', { params: { projectId: id }, signal })
    const { init_phase: phase } = project
    if (phase !== null && phase !== last) await onPhase(phase)
    last = phase
    return project
  }
  return pollUntil(read, ({ init_phase: phase }) => FINAL_PHASES.has(phase), signal)
}

async function printOutcome(session: CliSession, client: Client, project: Project): Promise<number> {
  const { stderr } = session.context
  await printJson(session.context.stdout, project)
  if (project.init_phase === 'awaiting_secrets') {
    await stderr.write(await missingVariablesText(client, project))
    return AWAITS_SECRETS
  }
  if (project.init_phase !== 'failed') return 0
  await printLogEnd(stderr, projectLog(client, project.id))
  return 1
}

async function printOutcomeText(session: CliSession, client: Client, project: Project): Promise<number> {
  const { stdout, stderr } = session.context
  const { id, slug, url, init_phase: phase } = project
  if (phase === 'failed') {
    throw new CommandError(
      `${slug} could not be brought up; the log above says why. Mend it, then run: berth projects init ${id}`,
    )
  }
  if (phase === 'awaiting_secrets') {
    await stderr.write(await missingVariablesText(client, project))
    return AWAITS_SECRETS
  }
  if (url !== null) await stdout.write(`${printable(slug)} is ready at ${url}\n`)
  else
    await stdout.write(
      `${slug} is ready, and private. Give it a URL with: berth projects update ${id} --public\n`,
    )
  return 0
}
