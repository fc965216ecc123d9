import type { InitPhase, Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { followLog, logText, projectLog } from '../log.ts'
import { paint, printable, printJson } from '../output.ts'
import type { CliSession } from '../session.ts'
import { missingVariablesText } from './missing-variables.ts'

/** The exit code where the bring-up waits for variables. */
export const AWAITS_SECRETS = 3

/** Milliseconds between two looks at the phase. */
const POLL_INTERVAL_MS = 150

/** Looks at whether lines still come when the bring-up is over. */
const MAX_POLLS = 5

/** Lines of the log that a program gets of a failure. */
const SHOWN_LINES = 50

/** As many lines as the API gives at once. */
const ALL_LINES = 10_000

/** Phases in which nothing goes on by itself. */
const FINAL_PHASES: ReadonlySet<InitPhase | null> = new Set([null, 'awaiting_secrets', 'ready', 'failed'])

/** How a bring-up is followed. */
export interface FollowOptions {
  /** For a program: nothing but the project as it is in the end; on stderr why, where it is not ready. */
  json?: boolean | undefined
  /** ISO 8601; lines of the log from before are of earlier runs. */
  since: string
}

/**
 * Follows a bring-up to its end, with its phases and its log on stderr and the outcome on stdout. Ctrl-C
 * leaves it going.
 *
 * @returns the exit code: 0 where the app is ready, 1 where it failed, AWAITS_SECRETS where variables are missing
 */
export async function followBringUp(
  session: CliSession,
  client: Client,
  project: Project,
  { json = false, since }: FollowOptions,
): Promise<number> {
  const { stderr } = session.context
  const code = await untilInterrupted(async (signal) => {
    const settled = json
      ? await waitUntilFinal(client, project, signal)
      : await watch(session, client, project, since, signal)
    return json ? printOutcome(session, client, settled) : printOutcomeText(session, client, settled)
  })
  if (code > 128) {
    await stderr.write(
      `\nberth: the bring-up of ${project.slug} goes on. Look at it with: berth projects logs ${project.id} -f\n`,
    )
  }
  return code
}

/** Shows phases and log until the bring-up rests. */
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
  const showing = show().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  const resting = waitUntilFinal(client, project, signal, (phase) =>
    stderr.write(`${paint(stderr, 'bold', `→ ${phase}`)}\n`),
  )
  try {
    const settled = await Promise.race([resting, showing.then(() => resting)])
    // What was logged before the end is on its way. An app may go on talking for ever.
    for (let seen = -1, looks = 0; seen !== lines && looks < MAX_POLLS; looks += 1) {
      seen = lines
      await Bun.sleep(POLL_INTERVAL_MS)
    }
    return settled
  } finally {
    done.abort()
    await showing.catch(() => {})
  }
}

/** Resolves to the project when its bring-up rests. */
async function waitUntilFinal(
  client: Client,
  { id }: Project,
  signal: AbortSignal,
  onPhase: (phase: InitPhase) => Promise<void> = async () => {},
): Promise<Project> {
  let last: InitPhase | null = null
  for (;;) {
    const project = await client.call('projects.get', { params: { projectId: id }, signal })
    const { init_phase: phase } = project
    if (phase !== null && phase !== last) await onPhase(phase)
    last = phase
    if (FINAL_PHASES.has(phase)) return project
    await Bun.sleep(POLL_INTERVAL_MS)
    signal.throwIfAborted()
  }
}

async function printOutcome(session: CliSession, client: Client, project: Project): Promise<number> {
  const { stderr } = session.context
  await printJson(session.context.stdout, project)
  if (project.init_phase === 'awaiting_secrets') {
    await stderr.write(await missingVariablesText(client, project))
    return AWAITS_SECRETS
  }
  if (project.init_phase !== 'failed') return 0
  const { logs } = await projectLog(client, project.id).read(SHOWN_LINES)
  for (const line of logs) await stderr.write(logText(stderr, line))
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
