import { ComputeError, type ExecCommand, type ExecExit } from '../../compute/driver.ts'
import { RefusalCollector, type RefusedDestination } from '../../compute/outbound.ts'
import { WorkspaceError } from '../../compute/workspace.ts'
import { BerthError, badRequest } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { SendEvent } from '../../http/sse.ts'
import { checkEnvironment } from '../secrets/environment.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { ExecRequest, ExecResult } from './model.ts'

const DEFAULT_TIMEOUT_MS = 600_000

/** Most bytes of each stream in a result. */
export const OUTPUT_LIMIT = 10 * 1024 * 1024

/** The receiver of a command's output, and its limit. */
type Output = Pick<ExecCommand, 'onOutput' | 'outputLimit'>

/** How a command ended, and what its server was refused meanwhile. */
type ExecEnd = ExecExit & { refused?: RefusedDestination[] }

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
  async run(caller: Caller, serverId: string, request: ExecRequest, gone: AbortSignal): Promise<ExecResult> {
    const chunks = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
    const exit = await this.#execute(caller, serverId, request, gone, {
      outputLimit: OUTPUT_LIMIT,
      onOutput: (stream, data) => {
        chunks[stream].push(data)
      },
    })
    return { stdout: textOf(chunks.stdout), stderr: textOf(chunks.stderr), ...exit }
  }

  /**
   * Runs a command and sends `stdout`, `stderr` and `exit` events as they happen. A client that reads slowly slows
   * the command down.
   */
  async stream(
    caller: Caller,
    serverId: string,
    request: ExecRequest,
    gone: AbortSignal,
    send: SendEvent,
  ): Promise<void> {
    const output = new OutputEvents(send)
    try {
      const exit = await this.#execute(caller, serverId, request, gone, {
        onOutput: (stream, data) => output.write(stream, data),
      })
      await output.end()
      await send('exit', exit)
    } catch (error) {
      if (!(error instanceof BerthError)) throw error
      await send('error', error.toBody())
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
    request: ExecRequest,
    gone: AbortSignal,
    output: Output,
  ): Promise<ExecEnd> {
    if (request.cwd !== undefined || request.env !== undefined) await this.check(caller, serverId, request)
    const { row, sandbox, done } = await this.#servers.use(caller, serverId)
    try {
      const env = { ...this.#secrets.environment(serverId), ...request.env }
      using refusals = new RefusalCollector(sandbox.outboundControl)
      const execution = sandbox.exec({ ...commandOf(request), env, ...output })
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
        `"cwd" in the body: expected a folder inside the workspace, got ${JSON.stringify(cwd)}.`,
      )
    }
  }
}

/**
 * Returns a folder of the workspace relative to it: with some isolations commands see the workspace under another path.
 */
export const pathInWorkspace = (cwd: string): string => cwd.replace(/^\/workspace(?:\/+|$)/, '')

function commandOf({ command, cwd, stdin, timeoutMs = DEFAULT_TIMEOUT_MS }: ExecRequest) {
  return {
    command,
    timeoutMs,
    ...(cwd === undefined ? {} : { cwd: pathInWorkspace(cwd) }),
    ...(stdin === undefined ? {} : { stdin: new TextEncoder().encode(stdin) }),
  }
}

const textOf = (chunks: Uint8Array[]): string => {
  const [only] = chunks
  if (only === undefined) return ''
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(
    chunks.length === 1 ? only : Buffer.concat(chunks),
  )
}

type Stream = 'stdout' | 'stderr'

/**
 * Converts a command's bytes to `stdout` and `stderr` events. Text is sent as `{"data": "…"}`; a character that a
 * chunk cuts is held back until it is complete. Bytes that are not UTF-8 are sent as `{"data": "…", "encoding":
 * "base64"}`.
 */
class OutputEvents {
  readonly #send: SendEvent
  readonly #rest: Record<Stream, Uint8Array> = { stdout: new Uint8Array(0), stderr: new Uint8Array(0) }

  constructor(send: SendEvent) {
    this.#send = send
  }

  /** Sends the complete characters of a chunk. Resolves when more may be written. */
  write(stream: Stream, chunk: Uint8Array): Promise<void> | void {
    const bytes = this.#rest[stream].length ? Buffer.concat([this.#rest[stream], chunk]) : chunk
    const cut = bytes.length - unfinished(bytes)
    this.#rest[stream] = bytes.slice(cut)
    if (cut > 0) return this.#event(stream, bytes.subarray(0, cut))
  }

  /** Sends the bytes that were held back. */
  async end(): Promise<void> {
    for (const stream of ['stdout', 'stderr'] as const) {
      if (this.#rest[stream].length) await this.#event(stream, this.#rest[stream])
    }
  }

  #event(stream: Stream, bytes: Uint8Array): Promise<void> | void {
    try {
      return this.#send(stream, {
        data: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
      })
    } catch {
      return this.#send(stream, { data: Buffer.from(bytes).toString('base64'), encoding: 'base64' })
    }
  }
}

/** Returns the number of bytes at the end that begin an incomplete UTF-8 character (RFC 3629). */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length = byte > 0xf4 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}
