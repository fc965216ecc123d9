import { Elysia, status, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import type { AccessControl } from '../../http/authentication.ts'
import {
  FileDeleted,
  FileDeleteQuery,
  FileManifest,
  FileManifestQuery,
  FileQuery,
  FilesOrContent,
  FileWrite,
  FileWritten,
} from './model.ts'
import type { FilesService } from './service.ts'

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
        { query: FileDeleteQuery },
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
