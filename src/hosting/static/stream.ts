import type { WorkspaceFile } from '../../compute/workspace.ts'

/** Bytes that are read at a time, and held at most for one client. */
const PART = 256 * 1024

/** A file's bytes from `start` up to `end`, read as they are taken; the file is disposed of when that is over. */
export function fileStream(file: WorkspaceFile, start: number, end: number): ReadableStream<Uint8Array> {
  let at = start
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const bytes = await file.read(at, Math.min(PART, end - at))
          at += bytes.length
          if (bytes.length > 0) controller.enqueue(bytes)
          // A file that was cut short has promised more than it has: the client has to see a failure.
          if (bytes.length === 0) throw new Error('the file became shorter while it was read')
          if (at < end) return
          file[Symbol.dispose]()
          controller.close()
        } catch (error) {
          file[Symbol.dispose]()
          throw error
        }
      },
      cancel: () => file[Symbol.dispose](),
    },
    { highWaterMark: 0 },
  )
}
