import type { Workspace } from '../../compute/workspace.ts'
import { badRequest } from '../../errors.ts'
import { AppError, type AppPlan, beginningOfCommand, findAppDirectory } from '../../hosting/app.ts'
import type { Hosting } from '../../hosting/hosting.ts'
import { accountCaller } from '../../http/caller.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import type { Logger } from '../../runtime/logger.ts'
import {
  type ChangedFiles,
  FileChange,
  recoverChange,
  type UnfinishedChange,
  UnfinishedChanges,
} from '../apps/file-change.ts'
import { IncomingFiles, storageLeft } from '../apps/incoming-files.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import { describedTree, parseAppDirectory } from './app-directory.ts'
import { isIdle } from './bring-up.ts'
import type { ProjectCode } from './code.ts'
import type { ProjectPush } from './model.ts'
import type { ProjectApps } from './project-app.ts'
import type { ProjectRecords, RecordsDependencies } from './records.ts'
import { type ProjectRow, projectDirectory, projectOwner } from './table.ts'

/** Dependencies of pushes. */
interface PushDependencies extends Pick<RecordsDependencies, 'queries'> {
  clock: Clock
  ids: Ids
  logger: Logger
  records: ProjectRecords
  servers: ServersService
  hosting: Hosting
  code: ProjectCode
  apps: ProjectApps
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
  readonly #incoming: IncomingFiles
  readonly #unfinished: UnfinishedChanges

  constructor(dependencies: PushDependencies) {
    this.#dependencies = dependencies
    this.#incoming = new IncomingFiles(dependencies.clock)
    this.#unfinished = new UnfinishedChanges(dependencies.queries)
  }

  /**
   * Makes the code of a project what a manifest describes, and brings the app up again as far as that is necessary.
   * Removes what came from outside earlier and is not in the manifest; what the app has made stays. If the app runs and the
   * bring-up fails, the code of before is put back.
   *
   * @param archive the content of the files that differ, and of no others that the manifest lacks
   * @throws BerthError 400 for a path or an archive that is refused
   */
  async push(
    row: ProjectRow,
    server: ServerRow,
    pushed: ProjectPush,
    archive: Uint8Array | null,
  ): Promise<Pushed> {
    const { servers, records, apps } = this.#dependencies
    const { files, links = [] } = pushed
    const workspace = servers.workspace(server)
    const paths = [...files, ...links].map(({ path }) => path)
    const target = {
      ...{ id: row.id, workspace, directory: projectDirectory(row) },
      room: () => storageLeft(servers, server),
    }
    const appDirectory =
      pushed.directory === undefined ? row.directory : parseAppDirectory('directory', pushed.directory)
    const { problem } = await findAppDirectory(describedTree(pushed), appDirectory)
    if (problem !== null) throw badRequest(`${problem} "directory" names that of the app.`)
    const wanted = new Set(paths)
    const changeTo = (received: Pick<ChangedFiles, 'tree' | 'written'>): ChangedFiles => ({
      ...{ ...received, paths, appDirectory },
      removed: records.listCode(row.id).filter((path) => !wanted.has(path)),
    })
    const taken = await this.#incoming.take(target, pushed, archive, {
      makeWay: async (received) => {
        if (!this.#isReadyWith(row, changeTo(received))) await apps.of(row).supersede()
      },
      apply: async (received) => {
        const change = changeTo(received)
        const began = await this.#apply(row, server, workspace, change)
        return { written: change.written.length, removed: change.removed.length, began }
      },
    })
    if (taken.missing !== null) return { missing: [...taken.missing], written: 0, removed: 0, began: null }
    return { missing: [], ...taken.result }
  }

  /** Reports whether a project has nothing to change and runs, as it does after a failure that was undone. */
  #isReadyWith({ id }: ProjectRow, { written, removed, appDirectory }: ChangedFiles): boolean {
    const { records, hosting, apps } = this.#dependencies
    const row = records.find(id)
    const app = hosting.find(id)
    const isRestored = row?.initPhase === 'failed' && app?.crash === null && apps.of(row).isRestored(row)
    const isUp = (row?.initPhase === 'ready' || isRestored) && app?.isUp === true
    return isUp && written.length === 0 && removed.length === 0 && row?.directory === appDirectory
  }

  /** Changes the files. Keeps those of the version that runs, if one does, to be put back if the push fails. */
  async #replaceFiles(row: ProjectRow, workspace: Workspace, files: ChangedFiles): Promise<void> {
    const { hosting, records, apps } = this.#dependencies
    records.setFailedChange(row.id, null)
    const app = apps.of(row)
    const running = hosting.find(row.id)
    const wasUp = running?.isUp === true && running.crash === null
    if (!wasUp) await app.openChange?.discard()
    const change = app.openChange ?? (await this.#beginChange(row, workspace, wasUp))
    app.change = change
    await change.apply(files)
    records.setCode(row.id, files.paths, files.appDirectory)
    if (!change.canPutBack) await change.discard()
  }

  async #beginChange(row: ProjectRow, workspace: Workspace, wasUp: boolean): Promise<FileChange> {
    const { records } = this.#dependencies
    const { id, serverId, plan, directory: appDirectory } = row
    const change: FileChange = await FileChange.begin(
      {
        ...{ id, serverId, workspace, directory: projectDirectory(row), unfinished: this.#unfinished },
        onPutBack: (isBack) => {
          this.#incoming.noteChanged(id)
          if (!isBack) return
          records.setCode(id, change.before.paths, appDirectory)
          if (plan !== null) records.setPlan(id, plan)
        },
      },
      { plan, paths: records.listCode(id), wasUp, appDirectory },
    )
    return change
  }

  /** Puts the files back that a push has changed, which failed before its bring-up began, and goes on as before it. */
  async #undo(row: ProjectRow): Promise<void> {
    const { records, apps, hosting } = this.#dependencies
    if (!(await apps.of(row).openChange?.putBack())) return
    this.#unfinished.drop(row.id)
    // The bring-up that the push has ended.
    const phase = records.find(row.id)?.initPhase ?? null
    if (isIdle(phase)) return
    if (hosting.find(row.id)?.isUp) records.markRecovered(row.id)
    else apps.of(row).begin('install', row.proceed, null)
  }

  /** Removes what is kept for a project, which is deleted. */
  async forget(row: ProjectRow): Promise<void> {
    await this.#incoming.forget(row.id)
    await this.#dependencies.apps.of(row).openChange?.discard()
    this.#unfinished.drop(row.id)
  }

  /** Recovers the pushes that an earlier berth did not finish. The bring-ups that it notes are resumed with the others. */
  async recover(): Promise<void> {
    const { records } = this.#dependencies
    for (const noted of this.#unfinished.list('projects')) {
      const row = records.find(noted.appId)
      if (row !== undefined) {
        const { isBefore, text } = await recoverChange(this.#dependencies, noted, 'push')
        if (isBefore) this.#noteUndone(row, noted.change, text)
        else this.#noteCompleted(row, noted.change)
      }
      this.#unfinished.drop(noted.appId)
    }
  }

  #noteCompleted({ id, proceed }: ProjectRow, { nextPaths, nextAppDirectory }: UnfinishedChange): void {
    const { records, ids } = this.#dependencies
    records.setCode(id, nextPaths, nextAppDirectory)
    records.startBringUp(id, ids.next('irun'), 'install', proceed)
  }

  #noteUndone({ id, initPhase, proceed }: ProjectRow, change: UnfinishedChange, reason: string): void {
    const { records, ids, clock } = this.#dependencies
    const { plan, paths, appDirectory, isBuiltOver, wasUp, state } = change
    if (state === 'before') {
      records.setCode(id, paths, appDirectory)
      if (plan !== null) records.setPlan(id, plan)
      records.setFailedChange(id, { reason, at: clock.now() })
    }
    if (isBuiltOver) records.startBringUp(id, ids.next('irun'), 'install', proceed)
    else if (wasUp && !isIdle(initPhase)) records.startBringUp(id, ids.next('irun'), 'start', proceed)
  }

  /** Changes the files, and begins a bring-up if the app needs one. */
  async #apply(
    row: ProjectRow,
    server: ServerRow,
    workspace: Workspace,
    change: ChangedFiles,
  ): Promise<Phase | null> {
    const { apps, records, servers } = this.#dependencies
    const before = records.find(row.id) ?? row
    if (this.#isReadyWith(row, change)) {
      if (before.initPhase === 'failed') records.markRecovered(row.id)
      records.setFailedChange(row.id, null)
      return null
    }
    const app = await apps.of(before).hosted(before)
    // The bring-up starts the app itself, so its watch need not. Pages in browsers are reloaded by the watch alone.
    const isServed = before.plan?.start.kind === 'files' && before.plan.build === null
    const resume = isServed ? async () => {} : await app.pauseWatch()
    try {
      await this.#replaceFiles(before, workspace, change)
      servers.meter.changed(server)
      const began = await this.#next(records.find(row.id) ?? before, server, workspace)
      if (began === null) {
        await apps.of(row).openChange?.discard()
        // Changed files take effect at once. When an app takes a change by itself is not known.
        if (app.servesFiles) records.setWarnings(row.id, await app.findWarnings())
      } else {
        const open = apps.of(row).openChange
        if (began !== 'start') open?.markBuiltOver()
        apps.of(row).begin(began, before.proceed, open)
      }
      return began
    } catch (error) {
      await this.#undo(before)
      throw error
    } finally {
      void apps.of(row).waitForBringUp().then(resume)
    }
  }

  /** Returns the phase with which a bring-up has to begin for the code that is there; null if the app needs none. */
  async #next(row: ProjectRow, server: ServerRow, workspace: Workspace): Promise<Phase | null> {
    const { servers, hosting, records, apps, code } = this.#dependencies
    const used = await servers.use(accountCaller(row.accountId), server.id)
    try {
      const directory = projectDirectory(row)
      const { log, isUp } = await apps.of(row).hosted(row)
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

/** Most bytes of a package.json that is read. @bound peer */
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
  const command = beginningOfCommand(start.command)
  if (WATCHING.test(command)) return true
  const script = SCRIPT.exec(command)?.[1]
  if (script === undefined) return false
  try {
    const text = Buffer.from(await workspace.read(`${directory}/package.json`, MAX_PACKAGE_BYTES)).toString()
    const { scripts } = fieldsOf(JSON.parse(text))
    return WATCHING.test(beginningOfCommand(String(fieldsOf(scripts)[script] ?? '')))
  } catch {
    // No package.json, or a damaged one: the script cannot watch.
    return false
  }
}
