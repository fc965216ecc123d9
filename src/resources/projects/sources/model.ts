import { type Static, t } from 'elysia'
import { base64, notTogether } from '../../../contract/schema.ts'
import { TemplateId } from '../../templates/model.ts'
import { AppDirectory } from '../app-directory.ts'
import { REFERENCE } from './git/reference.ts'

const directory = t.Optional(AppDirectory)

/** No code: an empty directory. */
const BlankSource = t.Object(
  { type: t.Literal('blank'), directory },
  { $id: 'BlankSource', additionalProperties: false },
)

/** A copy of one of berth's own templates. */
const TemplateSource = t.Object(
  {
    type: t.Literal('template'),
    template: TemplateId,
    directory,
  },
  { $id: 'TemplateSource', additionalProperties: false },
)

/** One commit of a git repository. */
const GitSource = t.Object(
  {
    type: t.Literal('git'),
    url: t.String({
      maxLength: 2048,
      writeOnly: true,
      description:
        '`https://`, `ssh://`, `git@host:path`, or a directory of the machine that berth was allowed to take. Credentials in it are kept encrypted and shown nowhere.',
    }),
    ref: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 255,
        pattern: REFERENCE,
        title: 'a branch, a tag or the full id of a commit',
        description: 'A branch, a tag, or the full id of a commit; by default the default branch.',
      }),
    ),
    directory,
  },
  { $id: 'GitSource', additionalProperties: false },
)

/** An archive: from a URL, in the body, or uploaded with it. */
const ArchiveSource = t.Object(
  {
    type: t.Literal('archive'),
    url: t.Optional(
      t.String({
        maxLength: 2048,
        writeOnly: true,
        description:
          'An `https://` URL. `http://` only on this machine or a private network, if berth was started with `--allow-local-sources`.',
      }),
    ),
    data: t.Optional(base64({ description: 'The archive itself.' })),
    directory,
  },
  {
    $id: 'ArchiveSource',
    additionalProperties: false,
    ...notTogether(['url', 'data']),
    description:
      'A zip, tar or tar.gz, told by its content: from `url`, in `data`, or as the part `archive` of a form.',
  },
)

/** The source of a project's code. */
export const ProjectSource = t.Union([BlankSource, TemplateSource, GitSource, ArchiveSource], {
  $id: 'ProjectSource',
  writeOnly: true,
})
export type ProjectSource = Static<typeof ProjectSource>
export type GitSource = Static<typeof GitSource>
export type ArchiveSource = Static<typeof ArchiveSource>

/** A source that is fetched after the project is created. The code of other sources is in the request. */
export type FetchedSource = GitSource | (ArchiveSource & { url: string })

/** Reports whether the code of a source is fetched after the project is created. */
export const isFetched = (source: ProjectSource): source is FetchedSource =>
  source.type === 'git' || (source.type === 'archive' && source.url !== undefined)

/** Returns a source as stored: without an archive's bytes, which have been unpacked. */
export function withoutArchiveData(source: ProjectSource): ProjectSource {
  if (source.type !== 'archive') return source
  const { data: _, ...kept } = source
  return kept
}
