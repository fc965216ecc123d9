import type { Build } from '../../resources/builds/model.ts'
import { STEP_KEYS, type StepKey } from '../../resources/builds/steps.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { buildLog, followLog, logText } from '../log.ts'
import { paint, printResult } from '../output.ts'
import type { CliSession } from '../session.ts'

/** Width of the longest phase's name. */
export const SOURCE_WIDTH = Math.max(...STEP_KEYS.map((key) => key.length))

/** Milliseconds between polls of a build's status. */
const POLL_INTERVAL_MS = 150

/** Largest number of lines that the API returns at once. */
const ALL_LINES = 10_000

/** Number of log lines shown for a failure with `--json`. */
const SHOWN_LINES = 50

/** Identifies a build. */
type BuildRef = Pick<Build, 'id' | 'serverId'>

/**
 * Follows a build to its end, with phases and log on stderr and the URL on stdout. Ctrl-C ends the following, not the
 * build.
 *
 * @param json prints only the final build, and on stderr the end of the log if it failed
 * @returns the exit code: 0 if the app responds, 1 if the build failed
 */
export async function followBuild(
  session: CliSession,
  client: Client,
  build: BuildRef,
  json = false,
): Promise<number> {
  const { stdout, stderr } = session.context
  const code = await untilInterrupted(async (signal) => {
    if (!json) await watch(session, client, build, signal)
    const ended = await waitUntilCompleted(client, build, signal)
    await printResult(stdout, json, ended, ({ url }) => {
      if (url === null) throw failure(ended)
      return `${url}\n`
    })
    if (ended.url !== null) return 0
    await printFailure(session, client, ended)
    return 1
  })
  if (code > 128) {
    await stderr.write(`\nberth: ${build.id} goes on. Look at it with: berth builds logs ${build.id} -f\n`)
  }
  return code
}

/** Shows phases and log until the stream ends. */
async function watch(
  session: CliSession,
  client: Client,
  build: BuildRef,
  signal: AbortSignal,
): Promise<void> {
  const { stderr } = session.context
  let at = -1
  for await (const line of followLog(buildLog(client, build), ALL_LINES, signal)) {
    const phase = STEP_KEYS.indexOf(line.source as StepKey)
    if (phase > at) {
      at = phase
      await stderr.write(`${paint(stderr, 'bold', `→ ${line.source}`)} ${phase + 1}/${STEP_KEYS.length}\n`)
    }
    await stderr.write(logText(stderr, line, SOURCE_WIDTH))
  }
}

/** Resolves to the build when it is completed. */
async function waitUntilCompleted(
  client: Client,
  { serverId, id }: BuildRef,
  signal: AbortSignal,
): Promise<Build> {
  const params = { serverId, buildId: id }
  for (;;) {
    const { build } = await client.call('builds.get', { params, signal })
    if (build.status === 'completed') return build
    await Bun.sleep(POLL_INTERVAL_MS)
    signal.throwIfAborted()
  }
}

async function printFailure(
  { context: { stderr } }: CliSession,
  client: Client,
  build: BuildRef,
): Promise<void> {
  const { logs } = await buildLog(client, build).read(SHOWN_LINES)
  for (const line of logs) await stderr.write(logText(stderr, line, SOURCE_WIDTH))
}

function failure({ id, steps }: Build): CommandError {
  const at = steps.find(({ status }) => status !== 'done')?.key
  return new CommandError(
    `${id} ended${at ? ` in the phase ${at}` : ''} without a URL; the log above says why. Mend that, and build again: files that are there stay.`,
  )
}
