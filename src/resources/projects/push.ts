import type { Workspace } from '../../compute/workspace.ts'
import { badRequest } from '../../errors.ts'
import { findAppDirectory } from '../../hosting/app-directory.ts'
import { AppError, type AppPlan } from '../../hosting/app-runtime/plan.ts'
import { beginningOf } from '../../hosting/detection/node/package-json.ts'
import type { Hosting } from '../../hosting/hosting.ts'
import { accountCaller } from '../../http/caller.ts'
import type { Clock } from '../../runtime/clock.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { describedTree, parseAppDirectory } from './app-directory.ts'
import { IDLE_PHASES, type ProjectApps } from './apps.ts'
import type { PreviousVersion } from './bring-up.ts'
import type { ProjectCode } from './code.ts'
import { IncomingFiles, refusalOf, storageLeft } from './incoming-files.ts'
import type { ProjectPush } from './model.ts'
import { type CodeChange, PreviousCode } from './previous-code.ts'
import type { ProjectRecords } from './records.ts'
import { type ProjectRow, projectDirectory, projectOwner } from './table.ts'
import type { UnfinishedPushes } from './unfinished-pushes.ts'

/** Dependencies of pushes. */
interface PushDependencies {
  clock: Clock
  records: ProjectRecords
  servers: ServersService
  hosting: Hosting
  code: ProjectCode
  apps: ProjectApps
  unfinished: UnfinishedPushes
}

/** What a push has done. */
export interface Pushed {
  /** Paths whose content the server lacks. If there are any, nothing was changed. */
  missing: string[]
  written: number
  removed: number
  /** The first phase of the bring-up that has begun; null if the app needs none. */
  began: Phase | null
}

type Phase = 'install' | 'build' | 'start'

/** Replaces the code of projects by what a directory elsewhere has. Only what differs has to be sent. */
export class ProjectPushes {
  readonly #dependencies: PushDependencies
  /** Applies one push of a project at a time. */
  readonly #mutex = new KeyedMutex()
  readonly #incoming: IncomingFiles
  /** The code of versions that run while pushes try to replace them. */
  readonly #previous = new Map<string, PreviousCode>()
  /** The bring-ups that failed and left the version before in place, by project. */
  readonly #restored = new Map<string, string>()
  /** How often the code of a project was put back. */
  readonly #putBacks = new Map<string, number>()

  constructor(dependencies: PushDependencies) {
    this.#dependencies = dependencies
    this.#incoming = new IncomingFiles(dependencies.clock, (id, run) => this.#mutex.run(id, run))
  }

  /**
   * Makes the code of a project what a manifest describes, and brings the app up again as far as that is necessary.
   * Removes what came from outside earlier and is not in the manifest; what the app has made stays. If the app runs and the
   * bring-up fails, the code of before is put back.
   *
   * @param archive the content of the files that differ, and of no others that the manifest lacks
   * @throws BerthError 400 for a path or an archive that is refused
   */
  push(
    row: ProjectRow,
    server: ServerRow,
    manifest: ProjectPush,
    archive: Uint8Array | null,
  ): Promise<Pushed> {
    return this.#mutex.run(row.id, () => this.#push(row, server, manifest, archive))
  }

  async #push(
    row: ProjectRow,
    server: ServerRow,
    pushed: ProjectPush,
    archive: Uint8Array | null,
  ): Promise<Pushed> {
    const { servers, records } = this.#dependencies
    const { files, links = [] } = pushed
    const workspace = servers.workspace(server)
    const paths = [...files, ...links].map(({ path }) => path)
    const target = {
      ...{ id: row.id, workspace, directory: projectDirectory(row) },
      room: () => storageLeft(servers, server),
    }
    const directory =
      pushed.directory === undefined ? row.directory : parseAppDirectory('directory', pushed.directory)
    try {
      const { problem } = await findAppDirectory(describedTree(pushed), directory)
      if (problem !== null) throw badRequest(`${problem} "directory" names that of the app.`)
      const putBacks = this.#putBacks.get(row.id)
      const wanted = new Set(paths)
      const received = await this.#incoming.receive(target, pushed, archive)
      const { missing, tree, written } = received
      if (missing.length > 0) return { missing, written: 0, removed: 0, began: null }
      const removed = records.listCode(row.id).filter((path) => !wanted.has(path))
      const change = { tree, written, removed, paths, appDirectory: directory }
      if (!this.#isReadyWith(row, change)) {
        await this.#dependencies.apps.supersede(row.id)
        // The push before has failed meanwhile, so that other files are there than those compared.
        if (this.#putBacks.get(row.id) !== putBacks) {
          const lacking = await this.#incoming.missingNow(target, pushed, received)
          if (lacking.length > 0) return { missing: lacking, written: 0, removed: 0, began: null }
        }
      }
      const began = await this.#apply(row, server, workspace, change)
      await this.#incoming.discard(row.id)
      return { missing: [], written: written.length, removed: removed.length, began }
    } catch (error) {
      await this.#incoming.discard(row.id)
      throw refusalOf(error)
    }
  }

  /** Reports whether a project has nothing to change and runs, as it does after a failure that was undone. */
  #isReadyWith({ id }: ProjectRow, { written, removed, appDirectory }: CodeChange): boolean {
    const { records, hosting } = this.#dependencies
    const row = records.find(id)
    const app = hosting.find(id)
    const isRestored =
      row?.initPhase === 'failed' && app?.crash === null && this.#restored.get(id) === row.initRunId
    const isUp = (row?.initPhase === 'ready' || isRestored) && app?.isUp === true
    return isUp && written.length === 0 && removed.length === 0 && row?.directory === appDirectory
  }

  /** Changes the files. Keeps those of the version that runs, if one does, to be put back if the push fails. */
  async #replaceFiles(row: ProjectRow, workspace: Workspace, change: CodeChange): Promise<void> {
    const { hosting, records, unfinished } = this.#dependencies
    records.setFailedChange(row.id, null)
    const app = hosting.find(row.id)
    const wasUp = app?.isUp === true && app.crash === null
    if (!wasUp) await this.#discardPrevious(row.id)
    const place = {
      id: row.id,
      serverId: row.serverId,
      workspace,
      directory: projectDirectory(row),
      unfinished,
    }
    const record = {
      ...{ plan: row.plan, paths: records.listCode(row.id), wasUp },
      appDirectory: row.directory,
    }
    const previous = this.#previous.get(row.id) ?? (await PreviousCode.begin(place, record))
    this.#previous.set(row.id, previous)
    const isKept = await previous.replace(change)
    records.setCode(row.id, change.paths, change.appDirectory)
    if (!isKept || !wasUp) await this.#discardPrevious(row.id)
  }

  /** Puts the files back that a push has changed, which failed before its bring-up began, and goes on as before it. */
  async #undo(row: ProjectRow): Promise<void> {
    const { records, apps, hosting } = this.#dependencies
    if (!(await this.#putBack(row.id))) return
    this.#dependencies.unfinished.drop(row.id)
    // The bring-up that the push has ended.
    const phase = records.find(row.id)?.initPhase ?? null
    if (IDLE_PHASES.has(phase)) return
    if (hosting.find(row.id)?.isUp) records.markRecovered(row.id)
    else apps.begin(row, 'install', row.proceed, this.#previousVersion(row.id))
  }

  /** Removes what is kept for a project, which is deleted. */
  async forget(id: string): Promise<void> {
    this.#incoming.forgetMissing(id)
    this.#putBacks.delete(id)
    this.#restored.delete(id)
    await this.#incoming.discard(id)
    await this.#discardPrevious(id)
    this.#dependencies.unfinished.drop(id)
  }

  async #discardPrevious(id: string): Promise<void> {
    const previous = this.#previous.get(id)
    this.#previous.delete(id)
    await previous?.discard()
  }

  #previousVersion(id: string): PreviousVersion {
    let putBack: Promise<boolean> | undefined
    return {
      isBuiltOver: this.#previous.get(id)?.isBuiltOver ?? false,
      discard: () => this.#discardPrevious(id),
      putBack: () => {
        putBack ??= this.#putBack(id)
        return putBack
      },
      markRestored: () => {
        const { records, unfinished } = this.#dependencies
        unfinished.drop(id)
        const run = records.find(id)?.initRunId
        if (run) this.#restored.set(id, run)
      },
    }
  }

  /** Puts the code of the version before back, with what is recorded of it. Reports whether there was any. */
  async #putBack(id: string): Promise<boolean> {
    const { records } = this.#dependencies
    const previous = this.#previous.get(id)
    if (previous === undefined) return false
    this.#previous.delete(id)
    this.#incoming.forgetMissing(id)
    this.#putBacks.set(id, (this.#putBacks.get(id) ?? 0) + 1)
    if (!(await previous.putBack())) return false
    records.setCode(id, previous.record.paths, previous.record.appDirectory)
    if (previous.record.plan !== null) records.setPlan(id, previous.record.plan)
    return true
  }

  /** Changes the files, and begins a bring-up if the app needs one. */
  async #apply(
    row: ProjectRow,
    server: ServerRow,
    workspace: Workspace,
    change: CodeChange,
  ): Promise<Phase | null> {
    const { apps, records, servers } = this.#dependencies
    const before = records.find(row.id) ?? row
    if (this.#isReadyWith(row, change)) {
      if (before.initPhase === 'failed') records.markRecovered(row.id)
      records.setFailedChange(row.id, null)
      return null
    }
    const app = await apps.app(before)
    // The bring-up starts the app itself, so its watch need not. Pages in browsers are reloaded by the watch alone.
    const isServed = before.plan?.start.kind === 'files' && before.plan.build === null
    const resume = isServed ? async () => {} : await app.pauseWatch()
    try {
      await this.#replaceFiles(before, workspace, change)
      servers.meter.changed(server)
      const began = await this.#next(records.find(row.id) ?? before, server, workspace)
      if (began === null) {
        await this.#discardPrevious(row.id)
        // Changed files take effect at once. When an app takes a change by itself is not known.
        if (app.servesFiles) records.setWarnings(row.id, await app.findWarnings())
      } else {
        const previous = this.#previous.get(row.id)
        if (began !== 'start') previous?.markBuiltOver()
        apps.begin(before, began, before.proceed, this.#previousVersion(row.id))
      }
      return began
    } catch (error) {
      await this.#undo(before)
      throw error
    } finally {
      void apps.waitForBringUp(row.id).then(resume)
    }
  }

  /** Returns the phase with which a bring-up has to begin for the code that is there; null if the app needs none. */
  async #next(row: ProjectRow, server: ServerRow, workspace: Workspace): Promise<Phase | null> {
    const { servers, hosting, records, apps, code } = this.#dependencies
    const used = await servers.use(accountCaller(row.accountId), server.id)
    try {
      const directory = projectDirectory(row)
      const { log, isUp } = await apps.app(row)
      const owner = projectOwner(row.id)
      const isWorker = row.kind === 'worker'
      const place = { sandbox: used.sandbox, workspace, directory, within: row.directory, isWorker }
      const location = { owner, serverId: server.id, ...place, log }
      const plan = await hosting.preparation.plan(location)
      if (plan.install !== null) {
        const installed = records.installedFrom(row.id)
        if (installed === null || installed !== (await code.fingerprint(row, plan, workspace)))
          return 'install'
      }
      const isSame = row.plan !== null && Bun.deepEquals(howItRuns(plan), howItRuns(row.plan))
      records.setPlan(row.id, plan)
      if (plan.build !== null) return 'build'
      const goesOn = isSame && isUp && row.initPhase === 'ready'
      const own = plan.directory === '' ? directory : `${directory}/${plan.directory}`
      return goesOn && (await watchesItself(plan, workspace, own)) ? null : 'start'
    } catch (error) {
      // The bring-up meets the same mistake, and says so in the project's log.
      if (error instanceof AppError) return 'install'
      throw error
    } finally {
      used.done()
    }
  }
}

/** Returns what of a plan decides how an app runs; the rest may quote its files. */
const howItRuns = ({ kind, tools, evidence, leftOut, others, warnings, ...rest }: AppPlan) => rest

/** Matches commands that take changes of their files by themselves. */
const WATCHING =
  /(?:^|\s)--(?:watch|hot|reload)(?=[\s=]|$)|\b(?:nodemon|ts-node-dev)\b|\btsx watch\b|\b(?:next|nuxt|astro|remix|vite) dev\b|\b(?:ng|vite|webpack) serve\b|(?:^|[\s/])vite(?=\s+-|\s*$)|\bflask\b.*\s--debug\b/

/** Most bytes of a package.json that is read. */
const MAX_PACKAGE_BYTES = 4 * 1024 * 1024

/** Matches a command that runs a script of package.json. */
const SCRIPT = /\b(?:bun|npm|pnpm|yarn)(?: --bun)? run ([\w:.-]+)/

/** Reports whether an app that runs takes changes of its files by itself: berth serves them, or its command watches. */
async function watchesItself(
  { start, workers }: AppPlan,
  workspace: Workspace,
  directory: string,
): Promise<boolean> {
  if (start.kind === 'workers' || Object.keys(workers).length > 0) return false
  if (start.kind === 'files') return true
  const command = beginningOf(start.command)
  if (WATCHING.test(command)) return true
  const script = SCRIPT.exec(command)?.[1]
  if (script === undefined) return false
  try {
    const text = Buffer.from(await workspace.read(`${directory}/package.json`, MAX_PACKAGE_BYTES)).toString()
    const { scripts } = fieldsOf(JSON.parse(text))
    return WATCHING.test(beginningOf(String(fieldsOf(scripts)[script] ?? '')))
  } catch {
    // No package.json, or a damaged one: the script cannot watch.
    return false
  }
}
