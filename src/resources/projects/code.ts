import { type Workspace, WorkspaceError } from '../../compute/workspace.ts'
import { badRequest } from '../../errors.ts'
import type { AppLog } from '../../hosting/app.ts'
import { AppError, type AppPlan } from '../../hosting/app.ts'
import { once } from '../../runtime/once.ts'
import type { Cipher } from '../../storage/cipher.ts'
import { storageLeft } from '../apps/incoming-files.ts'
import { GENERATED, SECRET_FILE } from '../files/manifest.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { TemplateCatalog } from '../templates/catalog.ts'
import type { ProjectTemplate } from '../templates/model.ts'
import { parseAppDirectory } from './app-directory.ts'
import type { ProjectCreate } from './model.ts'
import type { ProjectRecords } from './records.ts'
import { isFetched, type ProjectSource, withoutArchiveData } from './sources/model.ts'
import type { Sources, SourcesOptions } from './sources/sources.ts'
import { PROJECTS_DIRECTORY, type ProjectRow, projectDirectory } from './table.ts'

/** Dependencies of the code. */
interface CodeDependencies {
  cipher: Cipher
  servers: ServersService
  templates: TemplateCatalog
  records: ProjectRecords
  sources: SourcesOptions
}

/** The checked source of a new project's code. */
export interface ResolvedSource {
  source: ProjectSource
  /** The archive in the request. */
  archive: Uint8Array | null
  /** The app's own directory, relative to the code; empty for the code's own. */
  directory: string
  /** The template's defaults for fields that the request leaves out. */
  defaults: ProjectTemplate['defaults'] | null
}

/** The options of `fetch`. */
interface FetchOptions {
  server: ServerRow
  log: AppLog
  signal: AbortSignal
}

/** Matches the files that say which packages an app has. */
const PACKAGE_FILES = new RegExp(
  `(?:^|/)(?:${[
    'package(?:-lock)?\\.json|npm-shrinkwrap\\.json|bun\\.lockb?|pnpm-(?:lock|workspace)\\.yaml|yarn\\.lock|\\.(?:npmrc|yarnrc(?:\\.yml)?)|bunfig\\.toml',
    '[\\w.-]*(?:requirements|constraints)[\\w.-]*\\.(?:txt|in)|pyproject\\.toml|uv\\.lock|poetry\\.lock|Pipfile(?:\\.lock)?|setup\\.(?:py|cfg)|\\.python-version',
    'go\\.(?:mod|sum|work)|Cargo\\.(?:toml|lock)|deno\\.(?:jsonc?|lock)|Gemfile(?:\\.lock)?|composer\\.(?:json|lock)|Aptfile',
  ].join('|')})$`,
)

/** Fetches the code of projects. */
export class ProjectCode {
  readonly #dependencies: CodeDependencies
  readonly #sources: () => Promise<Sources>

  constructor(dependencies: CodeDependencies) {
    this.#dependencies = dependencies
    this.#sources = once(async () => {
      const { Sources } = await import('./sources/sources.ts')
      return new Sources(dependencies.sources)
    })
  }

  /**
   * Determines the source from a request's `template`, `source` and upload, and checks it.
   *
   * @throws BerthError 400 for a source that is not allowed, contradictory or unreadable
   */
  async resolveSource(
    { template, source: given }: ProjectCreate,
    upload: Uint8Array | null,
  ): Promise<ResolvedSource> {
    const source = given ?? sourceOf(template, upload)
    if (template !== undefined && (source.type !== 'template' || source.template !== template)) {
      throw badRequest(
        '"template" and "source" in the body: expected one of them, or the same template in both.',
      )
    }
    const directory = parseAppDirectory('source.directory', source.directory ?? '.')
    const archive = await (await this.#sources()).check(source, upload)
    const defaults =
      source.type === 'template' ? this.#dependencies.templates.find(source.template).defaults : null
    return { source, archive, directory, defaults }
  }

  /**
   * Unpacks an archive from a request into a project's directory.
   *
   * @throws BerthError 400
   */
  async unpack(row: ProjectRow, server: ServerRow, archive: Uint8Array, signal: AbortSignal): Promise<void> {
    const paths = await (await this.#sources()).unpack(archive, await this.destination(row, server, signal))
    this.#dependencies.records.setCode(row.id, paths.filter(isSent))
  }

  /**
   * Calls `look` with the directory of code that becomes no project; it is gone afterwards.
   *
   * @throws BerthError 400 for code that is refused or cannot be fetched
   */
  async inspect<T>(
    { source, archive, directory }: ResolvedSource,
    { server, signal }: { server: ServerRow; signal: AbortSignal },
    look: (directory: string) => Promise<T>,
  ): Promise<T> {
    const { servers, templates } = this.#dependencies
    const files = source.type === 'template' ? templates.files(source.template) : []
    const code = archive ?? (isFetched(source) ? source : await files)
    const room = await storageLeft(servers, server)
    const place = { workspace: servers.workspace(server), directory, room, signal }
    return (await this.#sources()).inspect(code, place, look)
  }

  /**
   * Fetches the code into a project's directory. It is complete when this resolves.
   *
   * @throws AppError, SourceError
   */
  async fetch(row: ProjectRow, { server, log, signal }: FetchOptions): Promise<void> {
    const source = this.#decryptSource(row)
    const sources = await this.#sources()
    const destination = await this.destination(row, server, signal)
    const { templates, records } = this.#dependencies
    let paths: string[]
    if (source !== null && isFetched(source)) {
      paths = await sources.fetch(source, { ...destination, log: (text) => log.append('fetch', text) })
    } else if (source?.type === 'template') {
      log.append('fetch', `Copying the template ${source.template}.`)
      paths = await sources.writeFiles(await templates.files(source.template), destination)
    } else {
      throw new AppError('The upload of the code was cut short. Delete the project and make it again.')
    }
    records.setCode(row.id, paths.filter(isSent))
  }

  /**
   * Returns a text that changes with what the packages of an app are installed from: the files of package managers in
   * its code, and the command.
   */
  async fingerprint({ id, slug }: ProjectRow, { install }: AppPlan, workspace: Workspace): Promise<string> {
    const paths = this.#dependencies.records.listCode(id).filter((path) => PACKAGE_FILES.test(path))
    const entries = await workspace.manifest(projectDirectory({ slug }), paths)
    return new Bun.CryptoHasher('sha256').update(JSON.stringify([install, entries])).digest('hex')
  }

  /** Returns the names of the entries beside the projects' directories. */
  async listDirectories(workspace: Workspace): Promise<string[]> {
    try {
      return (await workspace.entries(PROJECTS_DIRECTORY)).map(({ name }) => name)
    } catch (error) {
      // There is no project yet. The bring-up reports any other fault.
      if (error instanceof WorkspaceError) return []
      throw error
    }
  }

  /** Reports whether a project's directory contains a file. */
  async hasFiles(row: ProjectRow, workspace: Workspace): Promise<boolean> {
    const directory = `${projectDirectory(row)}/`
    return (await workspace.list({ all: false })).some((path) => path.startsWith(directory))
  }

  /** Reports whether a project's code can be fetched again. */
  canFetch(row: ProjectRow): boolean {
    const source = this.#decryptSource(row)
    return source !== null && (isFetched(source) || source.type === 'template')
  }

  /** Encrypts a project's source, which may contain credentials. Returns null for a blank one. */
  encryptSource(projectId: string, source: ProjectSource): Buffer | null {
    if (source.type === 'blank') return null
    return this.#dependencies.cipher.seal(JSON.stringify(withoutArchiveData(source)), contextOf(projectId))
  }

  #decryptSource({ id, source }: ProjectRow): ProjectSource | null {
    return source === null ? null : JSON.parse(this.#dependencies.cipher.open(source, contextOf(id)))
  }

  /** Returns where a project's code goes, and the room for it. */
  async destination(row: ProjectRow, server: ServerRow, signal: AbortSignal) {
    const { servers } = this.#dependencies
    return {
      workspace: servers.workspace(server),
      path: projectDirectory(row),
      directory: row.directory,
      room: await storageLeft(servers, server),
      signal,
    }
  }
}

/**
 * Reports whether every push sends a file if it is there: none sends packages, and few send `.env` files, which may hold
 * secrets. A push must not remove what it cannot send.
 */
const isSent = (path: string): boolean =>
  !path.split('/').some((name) => GENERATED.has(name) || SECRET_FILE.test(name))

function sourceOf(template: string | undefined, upload: Uint8Array | null): ProjectSource {
  if (template !== undefined) return { type: 'template', template }
  return upload === null ? { type: 'blank' } : { type: 'archive' }
}

const contextOf = (projectId: string): string => `projects ${projectId}`
