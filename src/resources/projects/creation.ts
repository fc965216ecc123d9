import { BerthError } from '../../errors.ts'
import { GatewayError, type ReservedPort } from '../../hosting/app.ts'
import type { Hosting } from '../../hosting/hosting.ts'
import type { Caller } from '../../http/caller.ts'
import { OWN_LABELS } from '../../http/host.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import { KeyedMutex } from '../../runtime/mutex.ts'
import type { Random } from '../../runtime/random.ts'
import type { Plans } from '../accounts/plans.ts'
import { checkEnvironment } from '../secrets/environment.ts'
import type { ServersService } from '../servers/service.ts'
import type { ServerRow } from '../servers/table.ts'
import type { ProjectCode, ResolvedSource } from './code.ts'
import type { ProjectCreate } from './model.ts'
import type { ProjectApps } from './project-app.ts'
import type { ProjectRecords } from './records.ts'
import type { ProjectRow } from './table.ts'

/** Dependencies of the creation of projects. */
interface CreationDependencies {
  clock: Clock
  ids: Ids
  /** For default names. */
  random: Random
  plans: Plans
  servers: ServersService
  hosting: Hosting
  records: ProjectRecords
  code: ProjectCode
  apps: ProjectApps
  /** Reports whether the scope of a credential names an id, so that no new project may have it. */
  isInScope: (id: string) => boolean
}

/** Creates projects: within the plan's limit, with a slug and a port of their own. */
export class ProjectCreation {
  readonly #dependencies: CreationDependencies
  /** Creates one project at a time, so that no two get the same slug or port or exceed the plan's limit. */
  readonly #mutex = new KeyedMutex()

  constructor(dependencies: CreationDependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Creates a project and returns its id. If its source contains code, its bring-up has started when this resolves.
   *
   * @param upload the archive in the request's file
   * @throws BerthError 400, 402 if the budget is used up, 403 for a key limited to projects or at the plan's limit,
   * 404
   */
  async create(
    caller: Caller,
    serverId: string,
    input: ProjectCreate,
    upload: Uint8Array | null,
  ): Promise<string> {
    const { servers, code, apps, records } = this.#dependencies
    const server = servers.getRow(caller, serverId)
    checkMayCreate(caller)
    checkEnvironment('env', input.env ?? {})
    const resolved = await code.resolveSource(input, upload)
    this.#checkCap(server)
    if (resolved.source.type !== 'blank') servers.checkBudget(server)
    const { port, release } = await this.#reservePort()
    try {
      const row = await this.#mutex.run('', async () => {
        // Code replaces the project's directory, so the slug must differ from existing directories.
        const directories =
          resolved.source.type === 'blank' ? [] : await code.listDirectories(servers.workspace(server))
        this.#checkCap(servers.getRow(caller, serverId))
        return this.#add(server, input, resolved, { port, directories: new Set(directories) })
      })
      const { archive } = resolved
      if (archive) {
        try {
          await apps.of(row).unpackUpload((signal) => code.unpack(row, server, archive, signal))
        } catch (error) {
          // Throws 404 if the server was deleted meanwhile, which then is the cause.
          servers.getRow(caller, serverId)
          records.delete(row)
          throw error
        }
      }
      await apps.of(row).startNew(row, archive !== null)
      return row.id
    } finally {
      release()
    }
  }

  #add(
    server: ServerRow,
    { name, description, visibility, lifecycle, kind, env = {} }: ProjectCreate,
    { source, directory, defaults }: ResolvedSource,
    { port, directories }: { port: number; directories: ReadonlySet<string> },
  ): ProjectRow {
    const { ids, clock, random, records, code, isInScope } = this.#dependencies
    const hasCode = source.type !== 'blank'
    const title = name ?? defaults?.name ?? randomName(random)
    const id = ids.next('prj', (one) => records.find(one) !== undefined || isInScope(one))
    const now = clock.now()
    const slugs = records.listSlugs()
    return records.add(
      {
        id,
        accountId: server.accountId,
        serverId: server.id,
        name: title,
        slug: slugFor(title, (slug) => slugs.has(slug) || directories.has(slug)),
        description: description ?? defaults?.description ?? null,
        visibility: visibility ?? defaults?.visibility ?? 'private',
        lifecycle: lifecycle ?? defaults?.lifecycle ?? 'persistent',
        template: source.type === 'template' ? source.template : null,
        kind: kind ?? null,
        directory,
        source: code.encryptSource(id, source),
        port,
        runtimeStatus: 'unbuilt',
        initRunId: hasCode ? ids.next('irun') : null,
        initPhase: hasCode ? 'fetch' : null,
        initPhases: hasCode ? [{ phase: 'fetch', at: now }] : [],
        createdAt: now,
        updatedAt: now,
      },
      env,
    )
  }

  async #reservePort(): Promise<ReservedPort> {
    try {
      return await this.#dependencies.hosting.reservePort()
    } catch (error) {
      if (error instanceof GatewayError) throw new BerthError('service_unavailable', error.message)
      throw error
    }
  }

  #checkCap(server: ServerRow): void {
    const cap = this.#dependencies.plans.of(server.accountId).plan.projects[server.tier]
    if (this.#dependencies.records.count(server.id) < cap) return
    throw new BerthError(
      'plan_limit',
      `The plan allows ${cap} projects on a ${server.tier} server. Delete one, or use a server of a larger tier.`,
    )
  }
}

/** Refuses a key that reaches only certain projects. @throws BerthError 403 */
export function checkMayCreate({ projects }: Caller): void {
  if (projects === null) return
  throw new BerthError(
    'forbidden',
    'This API key reaches only the projects of its list, which a new one is not in. Use a key without such a list.',
  )
}

/**
 * Most characters of a slug. A label of a host name has at most 63 (RFC 1035, 2.3.4); this leaves room for a suffix.
 * @bound system
 */
const MAX_LENGTH = 50

const ADJECTIVES = (
  'amber brisk calm clear coral crisp dawn deep early fair fleet fresh gentle golden green keen ' +
  'light lively lucky mellow misty noble north open pale quick quiet rapid silver smooth south ' +
  'steady still swift tidal warm west white wide windy'
).split(' ')

const NOUNS = (
  'anchor bay beacon bow breeze bridge buoy canal cape cargo coast compass cove current deck delta ' +
  'dock ferry fjord harbor haven helm hull island jetty keel lagoon lantern mast pier port quay reef ' +
  'rudder sail shore sound strait tide wharf'
).split(' ')

/** Returns a name of two words, for a project created without a name. */
const randomName = (random: Random): string => {
  const [one = 0, two = 0] = random.bytes(2)
  return `${ADJECTIVES[one % ADJECTIVES.length]} ${NOUNS[two % NOUNS.length]}`
}

/**
 * Converts a project's name to a label of a host name: lower-case letters, digits and hyphens (RFC 1123, 2.1). Appends
 * a number if the label is taken.
 */
function slugFor(name: string, isTaken: (slug: string) => boolean): string {
  const plain = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_LENGTH)
    .replace(/^-+|-+$/g, '')
  const base = plain === '' ? 'project' : plain
  for (let number = 1; ; number += 1) {
    const slug = number === 1 ? base : `${base}-${number}`
    if (!OWN_LABELS.has(slug) && !isTaken(slug)) return slug
  }
}
