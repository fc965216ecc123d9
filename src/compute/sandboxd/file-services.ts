import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { LocalWorkspace } from '../local/workspace.ts'
import type { Staging, WatchFilter, Workspace, WorkspaceFile } from '../workspace.ts'
import type { ServedCall } from './call-stream.ts'
import { FILE_PIECE, type FileArea, type FileCallName, READ_REQUEST_BYTES } from './protocol.ts'

/** Most bytes of the paths of a manifest. @bound program */
const MAX_PATHS_BYTES = 64 * 1024 * 1024

/** Where a server's files are. */
export interface FileDirectories {
  /** Absolute path of the workspace. */
  readonly workspace: string
  /** Absolute path of the directory of caches; null if berth reaches it itself. */
  readonly caches: string | null
}

/**
 * Carries out a call about the server's files: as berth does itself for a workspace of its own machine, with the same
 * code. What is prepared is in the workspace itself under a temporary name, because no other directory need be on its
 * file system. The server's programs can change it there, but sandboxd may do no more than they may.
 */
export async function serveFileCalls(
  name: FileCallName,
  call: ServedCall,
  { workspace, caches }: FileDirectories,
): Promise<void> {
  const area: FileArea = call.input.area === 'caches' ? 'caches' : 'workspace'
  const root = area === 'caches' ? caches : workspace
  if (root === null) throw new Error('The server has no directory of caches.')
  const counted = area === 'caches' ? null : caches
  await FILE_SERVICES[name](call, new LocalWorkspace(root, true, root, counted))
}

const FILE_SERVICES: Readonly<
  Record<FileCallName, (call: ServedCall, workspace: Workspace) => Promise<void>>
> = {
  /** Streams the paths, separated by NUL. */
  async list({ input, stream, respond }, workspace) {
    const paths = await workspace.list({ all: input.all === true })
    respond(null)
    await stream.send(Buffer.from(paths.join('\0')))
  },

  /** Streams the entries, separated by NUL: the first letter of the kind, and the name. */
  async entries({ input, stream, respond }, workspace) {
    const entries = await workspace.entries(pathOf(input))
    respond(null)
    await stream.send(Buffer.from(entries.map(({ kind, name }) => kind.slice(0, 1) + name).join('\0')))
  },

  async stat({ input, respond }, workspace) {
    respond(await workspace.stat(pathOf(input)))
  },

  async unchanged({ input, respond }, workspace) {
    respond(await workspace.unchanged(pathOf(input), String(input.identity)))
  },

  /** Answers with the size and streams as many bytes, fewer if the file becomes shorter. */
  async read({ input, stream, respond }, workspace) {
    using file = await workspace.open(pathOf(input))
    respond({ size: file.size })
    await sendPart(file, 0, file.size, (piece) => stream.send(piece))
  },

  /** Answers with what is known of the file, then each request in the stream with pieces. See `READ_REQUEST_BYTES`. */
  async open({ input, stream, respond }, workspace) {
    using file = await workspace.open(pathOf(input))
    const { size, mode, modifiedAt, changedAt, identity } = file
    respond({ size, mode, modifiedAt, changedAt, identity })
    let received = Buffer.alloc(0)
    for await (const chunk of stream.chunks()) {
      received = Buffer.concat([received, chunk])
      for (; received.length >= READ_REQUEST_BYTES; received = received.subarray(READ_REQUEST_BYTES)) {
        const length = received.readDoubleLE(8)
        const sent = await sendPart(file, received.readDoubleLE(0), length, async (piece) => {
          await stream.send(Buffer.concat([lengthBytes(piece.length), piece]))
        })
        if (sent < length) await stream.send(lengthBytes(0))
      }
    }
  },

  async write({ input, stream, respond }, workspace) {
    await workspace.write(pathOf(input), stream.chunks())
    respond(null)
  },

  async remove({ input, respond }, workspace) {
    await workspace.remove(pathOf(input))
    respond(null)
  },

  /** Takes the paths, separated by NUL, unless `all` is set. Streams the entries as JSON. */
  async manifest({ input, stream, respond }, workspace) {
    const paths = Buffer.from(await stream.readAll(MAX_PATHS_BYTES)).toString()
    const wanted = input.all === true ? null : paths === '' ? [] : paths.split('\0')
    const entries = await workspace.manifest(pathOf(input), wanted)
    respond(null)
    await stream.send(Buffer.from(JSON.stringify(entries)))
  },

  /** Takes the directory as a tar. */
  async moveIn({ input, stream, respond }, workspace) {
    await using staging = await workspace.staging()
    await workspace.moveIn(await unpackStaged(staging, stream), pathOf(input))
    respond(null)
  },

  /** Takes the directory as a tar. */
  async mergeIn({ input, stream, respond }, workspace) {
    await using staging = await workspace.staging()
    const options = { keepModes: input.keepModes === true }
    await workspace.mergeIn(await unpackStaged(staging, stream), pathOf(input), options)
    respond(null)
  },

  async pack({ stream, respond }, workspace) {
    respond(null)
    for await (const chunk of workspace.pack()) await stream.send(chunk)
  },

  async unpack({ stream, respond }, workspace) {
    await workspace.unpack(stream.chunks())
    respond(null)
  },

  /**
   * Answers when it watches. Streams the path of each change, with NUL behind it, until berth ends its stream. An empty
   * path says that the system's limit of watched files is reached.
   */
  async watch({ input, stream, respond }, workspace) {
    const { names, files, kept } = input as { names: string[]; files: [string, string]; kept: string | null }
    const ignored: WatchFilter = { names, files: new RegExp(...files), kept }
    /** Paths that are not sent yet: each once, however slowly berth reads. */
    const changed = new Set<string>()
    let isSending = false
    const send = async (): Promise<void> => {
      isSending = true
      for (const path of changed) {
        changed.delete(path)
        await stream.send(Buffer.from(`${path}\0`))
      }
      isSending = false
    }
    const report = (path: string): void => {
      changed.add(path)
      // If berth is gone, the call's end closes the watch.
      if (!isSending) void send().catch(() => {})
    }
    const watch = await workspace.watch(pathOf(input), {
      ignored,
      onChange: report,
      onLimit: () => report(''),
    })
    try {
      respond(null)
      await stream.read()
    } finally {
      await watch.close()
    }
  },

  async usage({ respond }, workspace) {
    respond(await workspace.usage())
  },
}

const pathOf = (input: ServedCall['input']): string => String(input.path)

/** Unpacks a tar into a new directory of a staging directory. */
async function unpackStaged({ path }: Staging, stream: ServedCall['stream']): Promise<string> {
  const dir = join(path, 'tree')
  mkdirSync(dir)
  await new LocalWorkspace(dir).unpack(stream.chunks())
  return dir
}

/** Sends a part of a file in pieces. @returns the number of bytes, fewer than `length` at the end of the file */
async function sendPart(
  file: WorkspaceFile,
  offset: number,
  length: number,
  send: (piece: Uint8Array) => Promise<void>,
): Promise<number> {
  let sent = 0
  while (sent < length) {
    const piece = await file.read(offset + sent, Math.min(FILE_PIECE, length - sent))
    if (piece.length === 0) break
    await send(piece)
    sent += piece.length
  }
  return sent
}

function lengthBytes(length: number): Uint8Array {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(length)
  return bytes
}
