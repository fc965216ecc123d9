import { Elysia, status, t } from 'elysia'
import type { WorkspaceFile } from '../../compute/workspace.ts'
import { operation } from '../../contract/operation.ts'
import { badRequest } from '../../errors.ts'
import type { AccessControl } from '../../http/authentication.ts'
import { parseRange } from '../../http/byte-range.ts'
import type { ByteStreamRun } from '../../http/byte-stream.ts'
import { CutConnection } from '../../http/cut.ts'
import {
  FileDeleted,
  FileManifest,
  FileManifestQuery,
  FilePathQuery,
  FileQuery,
  FilesOrContent,
  FileWrite,
  FileWritten,
} from './model.ts'
import type { FilesService } from './service.ts'

/** The media type of bytes. */
const BYTES_TYPE = 'application/octet-stream'

/** Bytes of a file that are read at a time. */
const READ_BYTES = 256 * 1024

/**
 * Returns a body for a response to HEAD. Elysia reads such a body to its end, only to add up what the chunks say is their
 * length, and drops it.
 */
const bodyOfLength = (byteLength: number): ReadableStream =>
  new ReadableStream({
    start(controller) {
      controller.enqueue({ byteLength })
      controller.close()
    },
  })

/**
 * Responds with an open file, or the part of it that the request asks for, and disposes of it.
 *
 * Bun sends every stream in chunks and drops its length: a direct one and a generator, too. `Bun.file` of a descriptor has a
 * wrong length if it is sliced, and by its path below /proc a name that nobody gave it. So what one read returns is sent whole,
 * with its length, and only more than that is streamed without one. Of a response to HEAD nothing is read.
 */
async function sendFile(
  file: WorkspaceFile,
  request: Request,
  streamBytes: (type: string, run: ByteStreamRun) => Response,
): Promise<Response> {
  const range = parseRange(request.headers.get('range'), file.size)
  if (range === 'unsatisfiable') {
    file[Symbol.dispose]()
    const { message } = badRequest('"range" in the headers: it lies behind the end of the file.')
    const headers = { 'content-range': `bytes */${file.size}` }
    return Response.json({ error: 'bad_request', message }, { status: 416, headers })
  }
  const { start, end } = range ?? { start: 0, end: file.size }
  const headers: Record<string, string> = {
    'content-type': BYTES_TYPE,
    'cache-control': 'no-cache',
    'accept-ranges': 'bytes',
    'content-length': String(end - start),
    ...(range === null ? {} : { 'content-range': `bytes ${start}-${end - 1}/${file.size}` }),
  }
  const init = { status: range === null ? 200 : 206, headers }
  if (request.method === 'HEAD') {
    file[Symbol.dispose]()
    return new Response(bodyOfLength(end - start), init)
  }
  if (end - start <= READ_BYTES) {
    using open = file
    const bytes = await open.read(start, end - start)
    // It has become shorter: as below, the response breaks off.
    return bytes.length < end - start ? new CutConnection() : new Response(bytes, init)
  }
  const { body } = streamBytes(BYTES_TYPE, async (send, gone) => {
    using open = file
    for (let at = start; at < end && !gone.aborted; ) {
      const bytes = await open.read(at, Math.min(READ_BYTES, end - at))
      // It has become shorter: without the rest the response breaks off.
      if (bytes.length === 0) return Promise.reject()
      await send(bytes)
      at += bytes.length
    }
  })
  return new Response(body, init)
}

/** Serves `/servers/{serverId}/files`: list, read, write and remove. */
export const filesRoutes = (access: AccessControl, files: FilesService) =>
  new Elysia({ prefix: '/servers/:serverId/files' })
    .use(access)
    .get(
      '',
      async ({ caller, params: { serverId }, query }) =>
        query.path === undefined
          ? await files.list(caller, serverId, {
              all: query.all === 'true',
              withDetails: query.details === 'true',
            })
          : await files.read(caller, serverId, query.path),
      operation(
        'files.read',
        {
          access: 'resource',
          summary: 'List all files, or read one',
          description:
            'Without `path`, lists the paths of all regular files, sorted. With `path`, returns the content of one file: as text, or as base64 if it is not UTF-8. A directory is refused.',
          success: { 200: FilesOrContent },
          errors: [400, 401, 404, 413],
        },
        { query: FileQuery },
      ),
    )
    .put(
      '',
      async ({ caller, params: { serverId }, body }) => {
        await files.write(caller, serverId, body)
        return status(201, { path: body.path, written: true as const })
      },
      operation(
        'files.write',
        {
          access: 'resource',
          summary: 'Write a file',
          description:
            'Makes missing directories and replaces the file in one step: a reader sees the old content or the new. A path outside the workspace is refused.',
          success: { 201: FileWritten },
          errors: [400, 401, 404, 413],
        },
        { body: FileWrite },
      ),
    )
    .delete(
      '',
      async ({ caller, params: { serverId }, query }) => {
        await files.delete(caller, serverId, query.path)
        return { path: query.path, deleted: true as const }
      },
      operation(
        'files.delete',
        {
          access: 'resource',
          summary: 'Remove a file or a directory',
          description: 'Removes a directory with everything in it.',
          success: { 200: FileDeleted },
          errors: [400, 401, 404],
        },
        { query: FilePathQuery },
      ),
    )
    .get(
      '/content',
      async ({ caller, params: { serverId }, query, request, streamBytes }) =>
        sendFile(await files.open(caller, serverId, query.path), request, streamBytes),
      operation(
        'files.download',
        {
          access: 'resource',
          summary: 'Download a file',
          description:
            'The bytes of a file of any size. `Range` asks for a part of it (RFC 9110, 14.2); several parts at once are sent as the whole.',
          gives: BYTES_TYPE,
          success: { 200: t.Void(), 206: t.Void() },
          errors: [400, 401, 404, 416],
        },
        { query: FilePathQuery },
      ),
    )
    .put(
      '/content',
      async ({ caller, params: { serverId }, query: { path }, request }) => {
        const declared = request.headers.get('content-length')
        const content = request.body ?? new Blob().stream()
        await files.upload(caller, serverId, path, content, declared === null ? null : Number(declared))
        return status(201, { path, written: true as const })
      },
      operation(
        'files.upload',
        {
          access: 'resource',
          summary: 'Upload a file',
          description:
            'Writes the bytes of the body to a file, as `files.write` does: in one step, when all of them have come. It may be as large as the storage of the server.',
          takes: { type: BYTES_TYPE, description: 'The content of the file.' },
          success: { 201: FileWritten },
          errors: [400, 401, 404],
        },
        { query: FilePathQuery },
      ),
    )
    .post(
      '/manifest',
      ({ caller, params: { serverId }, body }) => files.manifest(caller, serverId, body ?? {}),
      operation(
        'files.manifest',
        {
          access: 'resource',
          summary: 'Describe files by their content',
          description:
            'Returns size and SHA-256 of files, and the targets of symbolic links, so that a caller sends or fetches only what differs. A path at which there is neither is left out.',
          success: { 200: FileManifest },
          errors: [400, 401, 404],
        },
        { body: t.Optional(FileManifestQuery) },
      ),
    )
