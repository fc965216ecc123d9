import { LocalWorkspace } from '../../compute/trees.ts'
import { badRequest } from '../../errors.ts'
import { AppError, findAppDirectory, storedPlan, workspaceTree } from '../../hosting/app.ts'
import type { Detection as FoundApp } from '../../hosting/detection/detect.ts'
import type { Caller } from '../../http/caller.ts'
import type { ServersService } from '../servers/service.ts'
import type { ProjectCode, ResolvedSource } from './code.ts'
import { checkMayCreate } from './creation.ts'
import type { Detection, ProjectDetect } from './model.ts'
import { toDetectedApp } from './table.ts'

/** What a look at code may take, in milliseconds. */
const TIMEOUT_MS = 60_000

/** How many looks run at a time. Each has the code of a whole project on the disk. */
const AT_ONCE = 2

/** Detects the apps of code that becomes no project. */
export class ProjectDetection {
  readonly #dependencies: { servers: ServersService; code: ProjectCode }
  /** Called in order, when a look has ended. */
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(dependencies: { servers: ServersService; code: ProjectCode }) {
    this.#dependencies = dependencies
  }

  /**
   * Returns how the app of a source would be run on a server, with the tools of that server. Runs nothing of it.
   *
   * @param upload the archive in the request's file
   * @param signal ends it
   * @throws BerthError 400 for a source that is refused or takes longer than a minute, 402 if the budget is used up, 403
   * for a key limited to projects, 404
   */
  async detect(
    caller: Caller,
    serverId: string,
    input: ProjectDetect,
    upload: Uint8Array | null,
    signal: AbortSignal,
  ): Promise<Detection> {
    const { servers, code } = this.#dependencies
    const server = servers.getRow(caller, serverId)
    checkMayCreate(caller)
    const source = await code.resolveSource(input, upload)
    if (source.source.type === 'blank')
      throw badRequest('There is no code to look at: give "source", "template" or an archive.')
    servers.checkBudget(server)
    await this.#takeTurn()
    const time = AbortSignal.timeout(TIMEOUT_MS)
    try {
      return await this.#look(caller, serverId, source, AbortSignal.any([signal, time]))
    } catch (error) {
      if (time.aborted)
        throw badRequest(`The app was not detected within ${TIMEOUT_MS / 1_000} s, which is the limit.`)
      throw error instanceof AppError ? badRequest(error.message) : error
    } finally {
      this.#running -= 1
      this.#waiting.shift()?.()
    }
  }

  async #look(
    caller: Caller,
    serverId: string,
    source: ResolvedSource,
    signal: AbortSignal,
  ): Promise<Detection> {
    const { servers, code } = this.#dependencies
    const [{ detectApp, SandboxMachine }, { row, sandbox, done }] = await Promise.all([
      import('../../hosting/detection/detect.ts'),
      servers.use(caller, serverId, signal),
    ])
    try {
      return await code.inspect(source, { server: row, signal }, async (directory) => {
        const workspace = new LocalWorkspace(directory)
        const { path, problem } = await findAppDirectory(workspaceTree(workspace, ''), source.directory)
        if (problem !== null) throw badRequest(problem)
        const machine = new SandboxMachine(sandbox)
        // Not empty: it is the source of a project, and no workspace, whose directory "projects" is left out.
        return toDetection(await detectApp({ workspace, directory: '.', within: path, machine }))
      })
    } finally {
      done()
    }
  }

  /** Resolves when fewer looks run than may. */
  async #takeTurn(): Promise<void> {
    while (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#running += 1
  }
}

/** Returns what was detected as the API shows it. */
export function toDetection({ kind, start, problem, berthJson, ...rest }: FoundApp): Detection {
  const shown = toDetectedApp(
    storedPlan({ ...rest, kind: kind ?? '', start: start ?? { kind: 'command', command: '', port: null } }),
  )
  return {
    ...shown,
    kind,
    start: start === null ? null : shown.start,
    berth_json: berthJson,
    problem: problem?.message ?? null,
  }
}
