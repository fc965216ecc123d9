import { BerthError } from '../../errors.ts'
import { accountCaller, type Caller, isScoped, mayReachProject, mayReachServer } from '../../http/caller.ts'
import type { NotifiedChange } from '../../runtime/change-notifier.ts'
import type { Browser, Program } from '../accounts/access-model.ts'
import type { AccountsService } from '../accounts/service.ts'
import type { BuildsService } from '../builds/service.ts'
import type { DeploymentsService } from '../deployments/service.ts'
import type { ExecutionsService } from '../exec/executions.ts'
import type { KeysService } from '../keys/service.ts'
import type { ProjectsService } from '../projects/service.ts'
import type { SecretsService } from '../secrets/service.ts'
import type { ServersService } from '../servers/service.ts'
import type { TasksService } from '../tasks/service.ts'
import type { TerminalsService } from '../terminals/service.ts'
import type { WebhooksService } from '../webhooks/service.ts'
import type { ChangedObjects } from './model.ts'
import type { ChangeMessage, ChangeSource } from './stream.ts'
import { ChangeStreams, type StreamsDependencies } from './streams.ts'
import type { AccountChangeType, Changes, ChangeType } from './types.ts'

/** Dependencies of the streams. */
interface ChangesDependencies extends StreamsDependencies {
  changes: Changes
  servers: ServersService
  projects: () => Promise<ProjectsService>
  deployments: () => Promise<DeploymentsService>
  tasks: () => Promise<TasksService>
  builds: () => Promise<BuildsService>
  terminals: () => Promise<TerminalsService>
  executions: () => Promise<ExecutionsService>
  secrets: SecretsService
  keys: KeysService
  webhooks: () => Promise<WebhooksService>
  /** Return a program or a browser as `GET /programs` and `GET /browsers` do, or nothing if it has no access. */
  program: (caller: Caller, id: string) => Program | undefined
  browser: (caller: Caller, id: string) => Promise<Browser | undefined>
  accounts: Pick<AccountsService, 'get'>
}

/** Return an object of each type as its GET does, or nothing; 404 if it is gone. */
type Readers = {
  readonly [Type in AccountChangeType]: (
    caller: Caller,
    serverId: string,
    id: string,
  ) => ChangedObjects[Type] | undefined | Promise<ChangedObjects[Type] | undefined>
}

/** What changes in accounts, as their credentials see it. */
export class ChangesService {
  readonly #dependencies: ChangesDependencies
  readonly #readers: Readers
  /** The open streams. */
  readonly streams: ChangeStreams

  constructor(dependencies: ChangesDependencies) {
    this.#dependencies = dependencies
    this.streams = new ChangeStreams(dependencies)
    const { servers, projects, deployments, tasks, builds, terminals, executions } = dependencies
    const { secrets, keys, webhooks, program, browser, accounts } = dependencies
    this.#readers = {
      server: (caller, _, id) => servers.known(caller, id),
      project: async (caller, _, id) => (await projects()).get(caller, id),
      deployment: async (caller, serverId) => (await deployments()).list(caller, serverId)[0],
      task: async (caller, serverId, id) => (await tasks()).get(caller, serverId, id),
      build: async (caller, serverId, id) => (await builds()).get(caller, serverId, id),
      terminal: async (caller, serverId, id) => (await terminals()).get(caller, serverId, id),
      execution: async (caller, serverId, id) => (await executions()).get(caller, serverId, id),
      secret: async (caller, serverId, id) => {
        if (id === serverId) {
          servers.getRow(caller, id)
          return { server_id: id, keys: secrets.names(id) }
        }
        const project = (await projects()).getRow(caller, id)
        return { project_id: id, keys: secrets.names(project.serverId, id) }
      },
      key: (caller, _, id) => keys.get(caller, id),
      webhook: async (caller, _, id) => (await webhooks()).get(caller, id),
      program: (caller, _, id) => program(caller, id),
      browser: (caller, _, id) => browser(caller, id),
      account: (_, __, id) => accounts.get(id),
    }
  }

  /** Returns what changes of all that a caller reaches. */
  sourceOf(caller: Caller): ChangeSource<AccountChangeType> {
    const { changes } = this.#dependencies
    return {
      watch: (watcher) =>
        changes.watch(caller.accountId, (change) => {
          if (isOfAccount(change) && mayReach(caller, change)) watcher(change)
        }),
      read: (change) => this.#read(caller, change),
    }
  }

  /** Returns an object of any account as its GET does; null if it is gone, or belongs to the instance. */
  async readObject(change: NotifiedChange<ChangeType>): Promise<unknown> {
    return isOfAccount(change)
      ? (await this.#read(accountCaller(change.accountId ?? ''), change)).value
      : null
  }

  async #read(
    caller: Caller,
    { type, id, serverId }: NotifiedChange<AccountChangeType>,
  ): Promise<ChangeMessage> {
    const where = serverId === null || type === 'server' ? {} : { server_id: serverId }
    try {
      const value = (await this.#readers[type](caller, serverId ?? '', id)) ?? null
      return { type, id, ...where, value }
    } catch (error) {
      if (!(error instanceof BerthError) || error.status !== 404) throw error
      return { type, id, ...where, value: null }
    }
  }
}

/** Reports whether a change is of an object that belongs to an account. */
const isOfAccount = (change: NotifiedChange<ChangeType>): change is NotifiedChange<AccountChangeType> =>
  change.accountId !== null

/** Reports whether the caller's GETs reach an object, while it is there. */
function mayReach(caller: Caller, { type, id, serverId }: NotifiedChange<AccountChangeType>): boolean {
  if (serverId === null) return !isScoped(caller)
  const isOfProject = type === 'project' || (type === 'secret' && id !== serverId)
  return isOfProject ? mayReachProject(caller, { id, serverId }) : mayReachServer(caller, serverId)
}
