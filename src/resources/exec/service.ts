import { ComputeError } from '../../compute/compute-error.ts'
import type { ExecCommand } from '../../compute/execution.ts'
import { RefusalCollector } from '../../compute/outbound-control.ts'
import type { CommandOwner } from '../../compute/server-process.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import { BerthError, badRequest } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import { PieceQueue } from '../../runtime/piece-queue.ts'
import { checkEnvironment } from '../secrets/environment.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { ExecRequest, ExecResult } from './model.ts'
import { type ExecEnd, type ExecOutput, OUTPUT_LIMIT } from './output.ts'

const DEFAULT_TIMEOUT_MS = 600_000

/** A command to run: as the API has it, or with a stream for its input. */
export type ExecWish =
  | ExecRequest
  | (Omit<ExecRequest, 'stdin' | 'timeoutMs'> & {
      readonly timeoutMs: number | null
      readonly stdin: ReadableStream<Uint8Array>
    })

/** What the processes of its commands belong to. */
const OWNER: CommandOwner = { kind: 'exec', id: null }

/** The receiver of a command's output, and its limit. */
type Output = Pick<ExecCommand, 'onOutput' | 'outputLimit'>

/** Runs commands on servers. */
export class ExecService {
  readonly #servers: ServersService
  readonly #secrets: SecretsService

  constructor(servers: ServersService, secrets: SecretsService) {
    this.#servers = servers
    this.#secrets = secrets
  }

  /**
   * Runs a command to its end and collects its output.
   *
   * @param gone aborts the command when the client disconnects
   * @throws BerthError 400, 404, 502
   */
  async run(caller: Caller, serverId: string, request: ExecWish, gone: AbortSignal): Promise<ExecResult> {
    const printed = { stdout: new PieceQueue(), stderr: new PieceQueue() }
    const exit = await this.#execute(caller, serverId, request, gone, {
      outputLimit: OUTPUT_LIMIT,
      onOutput: (stream, data) => {
        printed[stream].push(null, data)
      },
    })
    return { stdout: textOf(printed.stdout), stderr: textOf(printed.stderr), ...exit }
  }

  /** Runs a command and passes its output on as it comes. A client that reads slowly slows the command down. */
  async stream(
    caller: Caller,
    serverId: string,
    request: ExecWish,
    gone: AbortSignal,
    output: ExecOutput,
  ): Promise<void> {
    try {
      const exit = await this.#execute(caller, serverId, request, gone, {
        onOutput: (stream, data) => output.write(stream, data),
      })
      await output.end(exit)
    } catch (error) {
      if (!(error instanceof BerthError)) throw error
      await output.fail(error)
    }
  }

  /**
   * Checks a request before anything runs.
   *
   * @throws BerthError 400, 402, 404
   */
  async check(
    caller: Caller,
    serverId: string,
    { cwd, env }: Pick<ExecRequest, 'cwd' | 'env'>,
  ): Promise<void> {
    checkEnvironment('env', env ?? {})
    const row = this.#servers.getRow(caller, serverId)
    this.#servers.checkBudget(row)
    if (cwd !== undefined) await this.#checkDir(row, cwd)
  }

  async #execute(
    caller: Caller,
    serverId: string,
    request: ExecWish,
    gone: AbortSignal,
    output: Output,
  ): Promise<ExecEnd> {
    if (request.cwd !== undefined || request.env !== undefined) await this.check(caller, serverId, request)
    const { row, sandbox, done } = await this.#servers.use(caller, serverId)
    try {
      const env = { ...this.#secrets.environment(serverId), ...request.env }
      using refusals = new RefusalCollector(sandbox.outboundControl)
      const execution = sandbox.exec({ ...commandOf(request), env, ...output, owner: OWNER })
      const cancel = () => execution.cancel()
      gone.addEventListener('abort', cancel)
      if (gone.aborted) cancel()
      const exit = await execution.exit
      gone.removeEventListener('abort', cancel)
      const refused = await refusals.end(exit.exitCode !== 0)
      return refused.length === 0 ? exit : { ...exit, refused }
    } catch (error) {
      if (!(error instanceof ComputeError)) throw error
      throw new BerthError('compute_backend_error', `The command could not be run: ${error.message}`)
    } finally {
      done()
      this.#servers.meter.changed(row)
    }
  }

  async #checkDir(row: ServerRow, cwd: string): Promise<void> {
    const entry = await this.#servers
      .workspace(row)
      .stat(cwd)
      .catch((error) => {
        if (error instanceof WorkspaceError) return null
        throw error
      })
    if (entry?.kind !== 'directory') {
      throw badRequest(
        `"cwd" in the body: expected a directory inside the workspace, got ${JSON.stringify(cwd)}.`,
      )
    }
  }
}

/**
 * Returns a directory of the workspace relative to it: with some isolations commands see the workspace under another path.
 */
export const pathInWorkspace = (cwd: string): string => cwd.replace(/^\/workspace(?:\/+|$)/, '')

function commandOf({ command, cwd, stdin, timeoutMs = DEFAULT_TIMEOUT_MS }: ExecWish) {
  return {
    command,
    timeoutMs,
    ...(cwd === undefined ? {} : { cwd: pathInWorkspace(cwd) }),
    ...(stdin === undefined
      ? {}
      : { stdin: typeof stdin === 'string' ? new TextEncoder().encode(stdin) : stdin }),
  }
}

const textOf = (printed: PieceQueue): string =>
  printed.isEmpty ? '' : new TextDecoder('utf-8', { ignoreBOM: true }).decode(printed.takeAll())
