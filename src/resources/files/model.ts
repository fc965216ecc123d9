import { type Static, t } from 'elysia'
import { BASE64, flagSchema, integer, NO_NUL, oneOf } from '../../contract/schema.ts'

/** What a path is whatever the workspace has. Whether it stays in the workspace, only the service can see. */
const PATH = { maxLength: 4_095, pattern: NO_NUL }

/** The encoding of `content`: text, or base64 for bytes that are not UTF-8. */
const Encoding = oneOf(['utf-8', 'base64'], { $id: 'FileEncoding' })

/** A file of a list. */
const FileDetails = t.Object(
  {
    path: t.String(),
    size: integer({ minimum: 0, description: 'In bytes.' }),
    modified_at: t.String({ format: 'date-time', description: 'When its content was last written.' }),
  },
  { $id: 'FileDetails', additionalProperties: true },
)
export type FileDetails = Static<typeof FileDetails>

/** All files of a workspace. */
export const FileList = t.Object(
  { files: t.Array(t.String()), details: t.Optional(t.Array(FileDetails)) },
  { $id: 'FileList', additionalProperties: true },
)

/** One file. */
export const FileContent = t.Object(
  { path: t.String(), content: t.String(), encoding: t.Optional(Encoding) },
  { $id: 'FileContent', additionalProperties: true },
)
export type FileContent = Static<typeof FileContent>

/** A file to write. */
export const FileWrite = t.Object(
  {
    path: t.String({
      ...PATH,
      minLength: 1,
      description: 'Relative to the workspace, or beginning with /workspace/.',
    }),
    content: t.String(),
    encoding: t.Optional(Encoding),
  },
  {
    $id: 'FileWrite',
    additionalProperties: true,
    // For documents. Validation has no such condition, so the service checks it.
    if: { properties: { encoding: { const: 'base64' } }, required: ['encoding'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties: { content: { ...BASE64, type: 'string' } } },
    examples: [{ path: 'notes/hello.txt', content: 'Hello' }],
  },
)
export type FileWrite = Static<typeof FileWrite>

/** The response to a write. */
export const FileWritten = t.Object(
  { path: t.String(), written: t.Literal(true) },
  { $id: 'FileWritten', additionalProperties: true },
)

/** The response to a removal. */
export const FileDeleted = t.Object(
  { path: t.String(), deleted: t.Literal(true) },
  { $id: 'FileDeleted', additionalProperties: true },
)

/** A list of all files, or one file. */
export const FilesOrContent = t.Union([FileList, FileContent], { $id: 'FilesOrContent' })

/** The file to read, or options of the list. */
export const FileQuery = t.Object(
  {
    path: t.Optional(t.String({ description: 'The file to read; without it all files are listed.' })),
    all: t.Optional(flagSchema('List what is in `.git` and `node_modules` directories too.')),
    details: t.Optional(flagSchema('List sizes and times in `details`, too.')),
  },
  { additionalProperties: true },
)

/** The path of a file or a directory. */
export const FilePathQuery = t.Object(
  { path: t.String({ ...PATH, minLength: 1 }) },
  { additionalProperties: true },
)

/** What a manifest describes. */
export const FileManifestQuery = t.Object(
  {
    directory: t.Optional(
      t.String({
        ...PATH,
        description: 'Relative to the workspace, or beginning with /workspace/; its own by default.',
      }),
    ),
    paths: t.Optional(
      t.Array(t.String({ ...PATH, minLength: 1 }), {
        maxItems: 20_000,
        description:
          'Files and links, relative to the directory. Without it: all, but for `.git` and `node_modules`.',
      }),
    ),
  },
  { $id: 'FileManifestQuery', additionalProperties: true, examples: [{ directory: 'projects/shop' }] },
)
export type FileManifestQuery = Static<typeof FileManifestQuery>

/** A file of a manifest. */
const ManifestFile = t.Object(
  {
    path: t.String({ description: 'Relative to the directory.' }),
    size: integer({ minimum: 0, description: 'In bytes.' }),
    sha256: t.String({ description: 'Of its content, in hexadecimal.' }),
    executable: t.Boolean({ description: 'Whether its owner may execute it.' }),
  },
  { $id: 'ManifestFile', additionalProperties: true },
)

/** A symbolic link of a manifest. */
const ManifestLink = t.Object(
  { path: t.String(), target: t.String({ description: 'As in the link.' }) },
  { $id: 'ManifestLink', additionalProperties: true },
)

/** Files and links by their content. */
export const FileManifest = t.Object(
  { files: t.Array(ManifestFile), links: t.Array(ManifestLink) },
  { $id: 'FileManifest', additionalProperties: true },
)
export type FileManifest = Static<typeof FileManifest>
