import type { Build } from '../../resources/builds/model.ts'
import { STEP_KEYS, type StepKey } from '../../resources/builds/steps.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { followWork, pollUntil } from '../follow.ts'
import { ALL_LINES, buildLog, followLog, logText, printLogEnd } from '../log.ts'
import { paint, printResult } from '../output.ts'
import { PhaseReport } from '../phases.ts'
import type { OutputStream } from '../process-context.ts'
import type { CliSession } from '../session.ts'
import { StatusLine } from '../status-line.ts'

/** Width of the longest phase's name. */
export const SOURCE_WIDTH = Math.max(...STEP_KEYS.map((key) => key.length))

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
  const { serverId, id } = build
  const hint = `${id} goes on. Look at it with: berth builds logs ${id} -f\n`
  return followWork(stderr, hint, async (signal) => {
    using status = new StatusLine(stderr)
    const phases = new PhaseReport(status.above(stderr), status)
    if (!json) await watch(status.above(stderr), phases, client, build, signal)
    const params = { serverId, buildId: id }
    const { build: ended } = await pollUntil(
      () => client.call('builds.get', { params, signal }),
      (response) => response.build.status === 'completed',
      signal,
    )
    await phases.end(ended.url !== null)
    await printResult(stdout, json, ended, ({ url }) => {
      if (url === null) throw failure(ended)
      return `${url}\n`
    })
    if (ended.url !== null) return 0
    await printLogEnd(stderr, buildLog(client, build), SOURCE_WIDTH)
    return 1
  })
}

/** Shows phases and log until the stream ends. */
async function watch(
  out: OutputStream,
  phases: PhaseReport,
  client: Client,
  build: BuildRef,
  signal: AbortSignal,
): Promise<void> {
  let at = -1
  for await (const line of followLog(buildLog(client, build), { tail: ALL_LINES }, signal)) {
    const phase = STEP_KEYS.indexOf(line.source as StepKey)
    if (phase > at) {
      at = phase
      const heading = `${paint(out, 'bold', `→ ${line.source}`)} ${phase + 1}/${STEP_KEYS.length}`
      await phases.begin(line.source, heading)
    }
    await out.write(logText(out, line, SOURCE_WIDTH))
  }
}

function failure({ id, steps }: Build): CommandError {
  const at = steps.find(({ status }) => status !== 'done')?.key
  return new CommandError(
    `${id} ended${at ? ` in the phase ${at}` : ''} without a URL; the log above says why. Fix that, and build again: files that are there stay.`,
  )
}
