import { type Workspace, WorkspaceError } from '../../compute/workspace.ts'
import { badRequest } from '../../errors.ts'
import type { AppLog } from '../../hosting/app-runtime/log/log.ts'
import { AppError } from '../../hosting/app-runtime/plan.ts'
import { once } from '../../runtime/once.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { TemplateCatalog } from '../templates/catalog.ts'
import type { ProjectTemplate } from '../templates/model.ts'
import type { ProjectCreate } from './model.ts'
import { isFetched, keptSource, type ProjectSource } from './sources/model.ts'
import type { Sources, SourcesOptions } from './sources/sources.ts'
import { folderOf, PROJECTS_FOLDER, type ProjectRow } from './table.ts'

/** Dependencies of the code. */
interface CodeDependencies {
  cipher: Cipher
  servers: ServersService
  templates: TemplateCatalog
  sources: SourcesOptions
}

/** The checked source of a new project's code. */
export interface SettledSource {
  source: ProjectSource
  /** The archive in the request. */
  archive: Uint8Array | null
  /** Defaults of the template, for fields that the request leaves out. */
  defaults: ProjectTemplate['defaults'] | null
}

/** What fetching works on. */
interface Fetch {
  server: ServerRow
  log: AppLog
  signal: AbortSignal
}

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
   * What a request says of the source, in its several ways.
   *
   * @throws BerthError 400 for one that is not allowed, contradicts itself or cannot be read
   */
  async settle(
    { template, source: given }: ProjectCreate,
    upload: Uint8Array | null,
  ): Promise<SettledSource> {
    const source = given ?? sourceOf(template, upload)
    if (template !== undefined && (source.type !== 'template' || source.template !== template)) {
      throw badRequest(
        '"template" and "source" in the body: expected one of them, or the same template in both.',
      )
    }
    const archive = await (await this.#sources()).check(source, upload)
    const defaults =
      source.type === 'template' ? this.#dependencies.templates.find(source.template).defaults : null
    return { source, archive, defaults }
  }

  /**
   * Unpacks an archive from a request into a project's directory.
   *
   * @throws BerthError 400
   */
  async unpack(row: ProjectRow, server: ServerRow, archive: Uint8Array, signal: AbortSignal): Promise<void> {
    await (await this.#sources()).unpack(archive, await this.#destination(row, server, signal))
  }

  /**
   * Fetches the code into a project's directory. It is complete when this resolves.
   *
   * @throws AppError, SourceError
   */
  async fetch(row: ProjectRow, { server, log, signal }: Fetch): Promise<void> {
    const source = this.#open(row)
    const sources = await this.#sources()
    const destination = await this.#destination(row, server, signal)
    if (source !== null && isFetched(source)) {
      await sources.fetch(source, { ...destination, log: (text) => log.append('fetch', text) })
    } else if (source?.type === 'template') {
      log.append('fetch', `Copying the template ${source.template}.`)
      await sources.placeFiles(await this.#dependencies.templates.files(source.template), destination)
    } else {
      throw new AppError('The upload of the code was cut short. Delete the project and make it again.')
    }
  }

  /** The names of what stands where the folders of projects do. */
  async folders(workspace: Workspace): Promise<string[]> {
    try {
      return (await workspace.entries(PROJECTS_FOLDER)).map(({ name }) => name)
    } catch (error) {
      // None has been made yet; what else is wrong with it tells the bring-up.
      if (error instanceof WorkspaceError) return []
      throw error
    }
  }

  /** Whether a project's folder has any file. */
  async isPresent(row: ProjectRow, workspace: Workspace): Promise<boolean> {
    const folder = `${folderOf(row)}/`
    return (await workspace.list({ all: false })).some((path) => path.startsWith(folder))
  }

  /** Whether a project's code can be fetched again. */
  canFetch(row: ProjectRow): boolean {
    const source = this.#open(row)
    return source !== null && (isFetched(source) || source.type === 'template')
  }

  /** Seals a project's source, which may contain credentials. */
  seal(projectId: string, source: ProjectSource): Buffer | null {
    if (source.type === 'blank') return null
    return this.#dependencies.cipher.seal(JSON.stringify(keptSource(source)), contextOf(projectId))
  }

  #open({ id, source }: ProjectRow): ProjectSource | null {
    return source === null ? null : JSON.parse(this.#dependencies.cipher.open(source, contextOf(id)))
  }

  async #destination(row: ProjectRow, server: ServerRow, signal: AbortSignal) {
    const { servers } = this.#dependencies
    const room = servers.limits(server).storageBytes - (await servers.meter.current(server))
    return { workspace: servers.workspace(server), path: folderOf(row), room: Math.max(0, room), signal }
  }
}

function sourceOf(template: string | undefined, upload: Uint8Array | null): ProjectSource {
  if (template !== undefined) return { type: 'template', template }
  return upload === null ? { type: 'blank' } : { type: 'archive' }
}

const contextOf = (projectId: string): string => `projects ${projectId}`
