import { rm } from 'node:fs/promises'
import { holdsInodes } from '../../system/files.ts'
import { pinRoot } from '../local/pinned.ts'
import { StagingArea } from '../local/staging.ts'
import { pathTooLarge, plainPaths } from '../local/workspace-path.ts'
import { ComputeError } from '../sandbox.ts'
import type { SandboxdClient } from '../sandboxd/client.ts'
import { CallError, type ClientCall } from '../sandboxd/client-calls.ts'
import {
  FILE_PIECE,
  type FileArea,
  type FileCallName,
  ProtocolError,
  READ_REQUEST_BYTES,
} from '../sandboxd/protocol.ts'
import {
  type DirectoryEntry,
  MAX_READ_BYTES,
  type ManifestEntry,
  type MergeOptions,
  type Staging,
  type StagingOptions,
  type WatchOptions,
  WORKSPACE_FAULTS,
  type Workspace,
  type WorkspaceEntry,
  WorkspaceError,
  type WorkspaceFault,
  type WorkspaceFile,
  type WorkspaceWatch,
} from '../workspace.ts'
import {
  decodeEntry,
  decodeManifest,
  isPathBelow,
  MAX_LIST_BYTES,
  readBoolean,
  readEntries,
  readFileFacts,
  readPaths,
  readSize,
  readUsage,
  wrongResponse,
} from './read-response.ts'

/** Longest path that is taken from a watch, in bytes: the system's own limit. @bound system */
const MAX_PATH_BYTES = 4096

/** The options of a `RemoteWorkspace`. */
interface RemoteWorkspaceOptions {
  /** Connects to a sandboxd whose workspace it is. Called for each operation. Throws `ComputeError`. */
  connect(): Promise<Pick<SandboxdClient, 'call'>>
  /** Absolute path of a directory of this machine in which to prepare what is sent; out of reach of servers. */
  staging: string
  /** Which of the server's files these are; `workspace` by default. */
  area?: FileArea
}

/**
 * A workspace that is reached by calls to the sandboxd beside it, which keeps every access inside (`file-services.ts`).
 * Contents pass under the calls' windows, so neither side holds more of them than its caller asks for. sandboxd is not
 * trusted: what it answers is checked, and concerns its own server's files alone.
 *
 * An operation that fails because the connection does throws `ComputeError`; a file was then written whole or not at all.
 */
export class RemoteWorkspace implements Workspace {
  readonly #connect: RemoteWorkspaceOptions['connect']
  readonly #files: FileArea
  readonly #area: StagingArea

  constructor({ connect, staging, area = 'workspace' }: RemoteWorkspaceOptions) {
    this.#connect = connect
    this.#files = area
    this.#area = new StagingArea(staging, holdsInodes)
  }

  async list({ all }: { all: boolean }): Promise<string[]> {
    return readPaths(await this.#receive('list', { all }, readList))
  }

  async manifest(directory: string, paths: readonly string[] | null): Promise<ManifestEntry[]> {
    const wanted = paths === null ? [] : [Buffer.from(plainPaths(paths).join('\0'))]
    const call = await this.#call('manifest', { path: directory, all: paths === null })
    try {
      for (const piece of wanted) await call.stream.send(piece)
      call.stream.end()
      return decodeManifest(await readList(call), paths)
    } catch (error) {
      call.drop()
      throw toWorkspaceError(error)
    }
  }

  async read(path: string, most = MAX_READ_BYTES): Promise<Uint8Array> {
    return await this.#receive('read', { path }, async (call) => {
      const size = readSize(await call.result)
      if (size > most) throw pathTooLarge(path, size, most)
      return await readFile(call, size)
    })
  }

  async open(path: string): Promise<WorkspaceFile> {
    const call = await this.#call('open', { path })
    try {
      return new RemoteFile(call, readFileFacts(await call.result), toWorkspaceError)
    } catch (error) {
      call.drop()
      throw toWorkspaceError(error)
    }
  }

  async unchanged(path: string, identity: string): Promise<boolean> {
    return readBoolean('unchanged', await this.#ask('unchanged', { path, identity }))
  }

  async entries(path: string): Promise<DirectoryEntry[]> {
    return readEntries(await this.#receive('entries', { path }, readList))
  }

  async write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    await this.#send('write', { path }, content instanceof Uint8Array ? [content] : content)
  }

  async remove(path: string): Promise<void> {
    await this.#ask('remove', { path })
  }

  async stat(path: string): Promise<WorkspaceEntry | null> {
    return decodeEntry(await this.#ask('stat', { path }))
  }

  async staging(options?: StagingOptions): Promise<Staging> {
    return this.#area.make(options)
  }

  stagingNamed(name: string): Staging {
    return this.#area.named(name)
  }

  moveIn(dir: string, path: string): Promise<void> {
    return this.#sendStaged('moveIn', dir, path, { keepModes: false })
  }

  mergeIn(dir: string, path: string, options: MergeOptions = { keepModes: false }): Promise<void> {
    return this.#sendStaged('mergeIn', dir, path, options)
  }

  async *pack(): AsyncGenerator<Uint8Array> {
    const call = await this.#call('pack', {})
    call.stream.end()
    try {
      yield* call.stream.chunks()
    } catch (error) {
      throw toWorkspaceError(error)
    } finally {
      call.drop()
    }
  }

  async unpack(archive: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#send('unpack', {}, archive)
  }

  async watch(path: string, { ignored, ...handlers }: WatchOptions): Promise<WorkspaceWatch> {
    const { names, files, kept } = ignored
    const call = await this.#call('watch', { path, names, files: [files.source, files.flags], kept })
    try {
      await call.result
    } catch (error) {
      throw toWorkspaceError(error)
    }
    const reading = readChanges(call, handlers)
    return {
      async close() {
        call.stream.end()
        await reading
      },
    }
  }

  async usage(): Promise<number> {
    return readUsage(await this.#ask('usage', {}))
  }

  /** Sends a prepared directory, and removes it here. */
  async #sendStaged(name: FileCallName, dir: string, path: string, options: MergeOptions): Promise<void> {
    await this.#area.check(dir, options)
    const { packWorkspaceTree } = await import('../local/pack-tree.ts')
    {
      using root = pinRoot(dir, holdsInodes)
      await this.#send(name, { path, ...options }, packWorkspaceTree(root))
    }
    await rm(dir, { recursive: true, force: true })
  }

  async #call(name: FileCallName, input: object): Promise<ClientCall> {
    const client = await this.#connect()
    return client.call(name, { ...input, area: this.#files })
  }

  /** Calls a service that only answers. */
  async #ask(name: FileCallName, input: object): Promise<unknown> {
    return await this.#receive(name, input, (call) => call.result)
  }

  /** Calls a service that sends bytes. */
  async #receive<T>(
    name: FileCallName,
    input: object,
    receive: (call: ClientCall) => Promise<T>,
  ): Promise<T> {
    const call = await this.#call(name, input)
    call.stream.end()
    try {
      return await receive(call)
    } catch (error) {
      call.drop()
      throw toWorkspaceError(error)
    }
  }

  /** Calls a service that takes bytes, at the pace at which it reads them. If `content` throws, the call is given up. */
  async #send(
    name: FileCallName,
    input: object,
    content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    const call = await this.#call(name, input)
    try {
      for await (const chunk of content) await call.stream.send(chunk)
      call.stream.end()
      await call.result
    } catch (error) {
      call.drop()
      throw toWorkspaceError(error)
    }
  }
}

async function readList(call: ClientCall): Promise<Uint8Array> {
  await call.result
  return await call.stream.readAll(MAX_LIST_BYTES)
}

/** Receives a file of at most `size` bytes; it may have become shorter. */
async function readFile(call: ClientCall, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size)
  let received = 0
  for await (const chunk of call.stream.chunks()) {
    if (received + chunk.length > size) throw wrongResponse('read')
    bytes.set(chunk, received)
    received += chunk.length
  }
  return received === size ? bytes : bytes.subarray(0, received)
}

/** Passes on what a watch reports, until it ends. */
async function readChanges(
  call: ClientCall,
  { onChange, onLimit }: Pick<WatchOptions, 'onChange' | 'onLimit'>,
): Promise<void> {
  let text = Buffer.alloc(0)
  try {
    for await (const chunk of call.stream.chunks()) {
      text = Buffer.concat([text, chunk])
      for (let end = text.indexOf(0); end !== -1; end = text.indexOf(0)) {
        const path = text.toString('utf8', 0, end)
        text = text.subarray(end + 1)
        if (path === '') onLimit()
        else if (isPathBelow(path)) onChange(path)
        else throw wrongResponse('watch')
      }
      if (text.length > MAX_PATH_BYTES) throw wrongResponse('watch')
    }
  } catch {
    // Changes are missed, which harms nothing: the sandbox is gone, or sends nonsense.
    call.drop()
  }
}

/** Turns an error of sandboxd into what a workspace of this machine throws; returns others unchanged. */
function toWorkspaceError(error: unknown): unknown {
  if (error instanceof ProtocolError) return new ComputeError(error.message, { cause: error })
  if (!(error instanceof CallError)) return error
  const { code, message } = error
  if (isFault(code)) return new WorkspaceError(code, message)
  return Object.assign(new ComputeError(message, { cause: error }), { code })
}

const isFault = (code: string): code is WorkspaceFault =>
  (WORKSPACE_FAULTS as readonly string[]).includes(code)

/** A file that sandboxd holds open for as long as an `open` call is under way. See `WorkspaceFile`. */
export class RemoteFile implements WorkspaceFile {
  readonly size: number
  readonly mode: number
  readonly modifiedAt: number
  readonly changedAt: number
  readonly identity: string
  readonly #call: ClientCall
  /** Turns an error of the call into one of a workspace. */
  readonly #toError: (error: unknown) => unknown
  /** The reads under way, which are answered in their order. */
  #reading: Promise<unknown> = Promise.resolve()
  /** Bytes of the stream that no read has taken yet. */
  #received: Uint8Array = new Uint8Array()

  constructor(
    call: ClientCall,
    facts: Omit<WorkspaceFile, 'read' | typeof Symbol.dispose>,
    toError: (error: unknown) => unknown,
  ) {
    this.#call = call
    this.#toError = toError
    this.size = facts.size
    this.mode = facts.mode
    this.modifiedAt = facts.modifiedAt
    this.changedAt = facts.changedAt
    this.identity = facts.identity
  }

  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const request = Buffer.alloc(READ_REQUEST_BYTES)
    request.writeDoubleLE(offset, 0)
    request.writeDoubleLE(length, 8)
    const sent = this.#call.stream.send(request)
    const before = this.#reading
    const bytes = this.#receive(length, Promise.all([before, sent]))
    this.#reading = bytes.catch(() => {})
    return bytes
  }

  [Symbol.dispose](): void {
    // sandboxd closes the file when it has answered the requests before.
    this.#call.stream.end()
  }

  async #receive(length: number, turn: Promise<unknown>): Promise<Uint8Array<ArrayBuffer>> {
    try {
      await turn
      const bytes = new Uint8Array(length)
      let filled = 0
      while (filled < length) {
        const piece = Buffer.from(await this.#take(4)).readUInt32LE()
        if (piece > Math.min(FILE_PIECE, length - filled)) throw wrongResponse('open')
        if (piece === 0) return bytes.subarray(0, filled)
        bytes.set(await this.#take(piece), filled)
        filled += piece
      }
      return bytes
    } catch (error) {
      throw this.#toError(error)
    }
  }

  /** Returns the next bytes of the stream, exactly as many. */
  async #take(length: number): Promise<Uint8Array> {
    while (this.#received.length < length) {
      const chunk = await this.#call.stream.read()
      if (chunk === null) throw new ComputeError('sandboxd has closed a file that is read.')
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    }
    const taken = this.#received.subarray(0, length)
    this.#received = this.#received.subarray(length)
    return taken
  }
}
