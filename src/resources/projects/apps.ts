import type { ServerLifecycleListener } from '../servers/lifecycle-listener.ts'
import type { ServerRow } from '../servers/table.ts'
import { ProjectApp, type ProjectAppDependencies } from './project-app.ts'
import type { ProjectRow } from './table.ts'

/** The apps of all projects. Resumes them with their servers and with berth, and stops them. */
export class ProjectApps implements ServerLifecycleListener {
  readonly #dependencies: ProjectAppDependencies
  readonly #apps = new Map<string, ProjectApp>()
  #stopping = false

  constructor(dependencies: Omit<ProjectAppDependencies, 'isStopping'>) {
    this.#dependencies = { ...dependencies, isStopping: () => this.#stopping }
    const { records, secrets } = dependencies
    secrets.onChange((serverId, projectId) => {
      const rows = projectId === '' ? records.listByServer(serverId) : [records.find(projectId)]
      for (const row of rows) if (row !== undefined) this.of(row).applyVariables(row)
    })
  }

  /** Returns the app of a project. */
  of({ id }: Pick<ProjectRow, 'id'>): ProjectApp {
    const app = this.#apps.get(id) ?? new ProjectApp(id, this.#dependencies)
    this.#apps.set(id, app)
    return app
  }

  /** Removes a project's site and log. Its files and its record are removed elsewhere. */
  async remove({ id }: ProjectRow): Promise<void> {
    await this.#dependencies.hosting.remove(id)
    this.#apps.delete(id)
  }

  /** Opens the sites of all public projects. Requests wait there until the apps run. */
  async exposeAll(): Promise<void> {
    await Promise.all(this.#dependencies.records.listAll().map((row) => this.of(row).updateExposure(row)))
  }

  /** Continues the bring-ups that the last stop of berth interrupted. */
  resumeBringUps(): void {
    for (const row of this.#dependencies.records.listAll()) this.of(row).continue(row)
  }

  /** Starts the apps of the server's projects. */
  serverStarted(serverId: string): void {
    for (const row of this.#dependencies.records.listByServer(serverId)) void this.of(row).resume()
  }

  /** Fails the bring-ups on the server. */
  serverStopping(serverId: string): void {
    const { records } = this.#dependencies
    for (const row of records.listByServer(serverId)) {
      void this.of(row).abort('server stopped')
      records.setRuntimeStatus(row.id, 'paused')
    }
  }

  /** Aborts the bring-ups on the server without an event: its projects are deleted with it. */
  serverDeleting(server: ServerRow): void {
    for (const row of this.#dependencies.records.listByServer(server.id))
      void this.of(row)
        .abort('dropped')
        .then(() => this.#apps.delete(row.id))
  }

  /** Stops all bring-ups. The next start continues them. */
  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#apps.values()].map((app) => app.abort('dropped')))
  }
}
