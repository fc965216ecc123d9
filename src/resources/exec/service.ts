import {
  type CommandOwner,
  ComputeError,
  type ExecCommand,
  type Execution,
  RefusalCollector,
  type Sandbox,
} from '../../compute/sandbox.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import { BerthError, badRequest } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import { unfinished } from '../../runtime/decode.ts'
import { once } from '../../runtime/once.ts'
import { PieceQueue } from '../../runtime/piece-queue.ts'
import { type PrintedFields, printedFields } from '../../runtime/printed.ts'
import { PrintedEnds, type Recorder } from '../../runtime/recorder.ts'
import type { RequestContext } from '../../runtime/request-context.ts'
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
      readonly stdin?: ReadableStream<Uint8Array> | Uint8Array
    })

/** The owner of the processes of a command that is not an execution. */
const OWNER: CommandOwner = { kind: 'exec', id: null }

/** How a command is run: the receiver of its output, and what it is run for. */
type Output = Pick<ExecCommand, 'onOutput' | 'outputLimit' | 'owner'>

/** A command that was started. */
export interface StartedCommand {
  readonly row: ServerRow
  readonly sandbox: Sandbox
  readonly execution: Execution
  /** Resolves when it has ended. Rejects with a `BerthError` (502) if it cannot be run. */
  readonly end: Promise<ExecEnd>
  /** Lets its server fall asleep while it runs. */
  letGo(): void
}

/** Dependencies of the commands. */
interface ExecDependencies {
  servers: ServersService
  secrets: SecretsService
  requests: RequestContext
  recorder: Recorder | null
}

/** Runs commands on servers. */
export class ExecService {
  readonly #servers: ServersService
  readonly #secrets: SecretsService
  readonly #requests: RequestContext
  readonly #recorder: Recorder | null

  constructor({ servers, secrets, requests, recorder }: ExecDependencies) {
    this.#servers = servers
    this.#secrets = secrets
    this.#requests = requests
    this.#recorder = recorder
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
    const output = {
      ...printedFields('stdout', keptBytes(printed.stdout, exit.truncated)),
      ...printedFields('stderr', keptBytes(printed.stderr, exit.truncated)),
    } as PrintedFields
    return { ...output, ...exit }
  }

  /** Runs a command and passes its output on as it comes. A client that reads slowly slows the command down. */
  async stream(
    caller: Caller,
    serverId: string,
    request: ExecWish,
    gone: AbortSignal,
    output: ExecOutput,
  ): Promise<void> {
    // A journal has no bodies of streams.
    const printed = this.#recorder && new PrintedEnds()
    const id = this.#requests.requestId
    try {
      const exit = await this.#execute(caller, serverId, request, gone, {
        onOutput: (stream, data) => {
          printed?.write(data)
          return output.write(stream, data)
        },
      })
      await output.end(exit)
    } catch (error) {
      if (!(error instanceof BerthError)) throw error
      await output.fail(error)
    } finally {
      if (printed && id !== null) this.#recorder?.output(id, printed)
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

  /**
   * Starts a command. Its server is in use until it ends, or `letGo` is called.
   *
   * @throws BerthError 400, 402, 404, 502
   */
  async start(caller: Caller, serverId: string, request: ExecWish, output: Output): Promise<StartedCommand> {
    if (request.cwd !== undefined || request.env !== undefined) await this.check(caller, serverId, request)
    const { row, sandbox, done } = await this.#servers.use(caller, serverId)
    const letGo = once(done)
    const refusals = new RefusalCollector(sandbox.outboundControl)
    const after = (): void => {
      refusals[Symbol.dispose]()
      letGo()
      this.#servers.meter.changed(row)
    }
    try {
      const env = { ...this.#secrets.environment(serverId), ...request.env }
      const execution = sandbox.exec({ ...commandOf(request), env, owner: OWNER, ...output })
      const endOf = async (): Promise<ExecEnd> => {
        try {
          const exit = await execution.exit
          const refused = await refusals.end(exit.exitCode !== 0)
          return refused.length === 0 ? exit : { ...exit, refused }
        } catch (error) {
          throw asBackendError(error)
        } finally {
          after()
        }
      }
      const end = endOf()
      // Its failure may come before anybody waits for it.
      end.catch(() => {})
      return { row, sandbox, execution, end, letGo }
    } catch (error) {
      after()
      throw asBackendError(error)
    }
  }

  /** Runs a command to its end. @param gone cancels it */
  async #execute(
    caller: Caller,
    serverId: string,
    request: ExecWish,
    gone: AbortSignal,
    output: Output,
  ): Promise<ExecEnd> {
    const { execution, end } = await this.start(caller, serverId, request, output)
    const cancel = (): void => execution.cancel()
    gone.addEventListener('abort', cancel)
    if (gone.aborted) cancel()
    try {
      return await end
    } finally {
      gone.removeEventListener('abort', cancel)
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

/** Converts an error of the compute driver to the failure of a request; returns any other error unchanged. */
export const asBackendError = (error: unknown): unknown =>
  error instanceof ComputeError
    ? new BerthError('compute_backend_error', `The command could not be run: ${error.message}`)
    : error

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

/** Returns the bytes of a stream that are kept: without the beginning of a character that the limit has cut. */
function keptBytes(printed: PieceQueue, truncated: boolean): Uint8Array {
  if (printed.isEmpty) return new Uint8Array(0)
  const bytes = printed.takeAll()
  const isCut = truncated && bytes.length >= OUTPUT_LIMIT
  return isCut ? bytes.subarray(0, bytes.length - unfinished(bytes)) : bytes
}
