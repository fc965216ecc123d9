import { join } from 'node:path/posix'
import type { CommandOwner, Sandbox } from '../../compute/sandbox.ts'
import type { Workspace } from '../../compute/workspace.ts'
import { sentence } from '../../runtime/error-info.ts'
import { onAbort } from '../../runtime/wait.ts'
import { describeMissingTool } from '../tool-names.ts'
import { describeWindowsScript, noteRefusals, socketHint } from './failure-hints.ts'
import type { AppLog } from './log/log.ts'
import type { LogSource } from './log/log-file.ts'
import { AppFailure } from './plan.ts'

/** Default time limit of an installation or a build, in milliseconds. */
const TIMEOUT_MS = 15 * 60_000

/** A command that prepares an app. */
interface PreparationStep {
  /** What the command belongs to. */
  owner: CommandOwner
  sandbox: Sandbox
  workspace: Workspace
  /** The app's directory, relative to the workspace. */
  cwd: string
  command: string
  /** Where the command goes first, relative to `cwd`. */
  directory?: string
  /** The command as it is logged, by default as it is. */
  shown?: string
  env: Readonly<Record<string, string>>
  log: AppLog
  source: Extract<LogSource, 'fetch' | 'install' | 'build' | 'release'>
  /** Aborts the command. */
  signal?: AbortSignal
  /** Time limit in milliseconds, by default 15 minutes. */
  timeoutMs?: number
}

/**
 * Runs a command that prepares an app, and logs its output.
 *
 * @throws AppFailure with the last lines of output if it fails; ComputeError if the sandbox is gone; the signal's
 * reason
 */
export async function runStep(step: PreparationStep): Promise<void> {
  const { owner, sandbox, workspace, cwd, command, env, log, source, signal } = step
  const { shown = command, directory = '', timeoutMs = TIMEOUT_MS } = step
  signal?.throwIfAborted()
  log.append('berth', `Runs: ${shown}`)
  const output = log.output(
    source,
    socketHint(sandbox, (hint) => log.append('berth', hint)),
  )
  const execution = sandbox.exec({
    command,
    cwd,
    env: { ...env },
    timeoutMs,
    owner,
    background: 'ends',
    onOutput: (stream, data) => output.write(stream, data),
  })
  const refusals = noteRefusals(sandbox, log)
  using _abort = signal === undefined ? null : onAbort(signal, () => execution.cancel())
  const { exitCode, timedOut } = await execution.exit.finally(() => refusals.end(true))
  output.end()
  signal?.throwIfAborted()
  if (timedOut) {
    throw new AppFailure(`The ${source} command took longer than ${timeoutMs / 60_000} minutes.`, output.last)
  }
  if (exitCode === 0) return
  const failed = { command: shown, exitCode, lines: output.last, workspace, cwd: join(cwd, directory) }
  const script = await describeWindowsScript(failed).catch(() => null)
  const why = script ?? describeMissingTool(output.last, sandbox.hasImage ?? false)
  const what = `The ${source} command failed with exit code ${exitCode}: ${shown}`
  throw new AppFailure(why === null ? what : `${sentence(what)} ${why}`, output.last)
}
