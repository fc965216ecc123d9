import type { Client } from './client.ts'
import { CommandError } from './errors.ts'
import type { ApiKind } from './find-instance.ts'
import { isWholeId } from './ids.ts'
import {
  type AccessibleSource,
  findNamed,
  type Named,
  type NameWords,
  pickOnly,
  type ServerPlace,
  unknownName,
} from './names.ts'
import type { CliSession } from './session.ts'

/** Matches what begins with the prefix of a kind of ids. */
const BEGINS_LIKE_ID = /^[a-z]+_/

/** The connection of a command. */
interface OwnConnection {
  readonly access: 'api' | 'control' | 'none'
  connect(): Promise<Client>
  /** Connects to the same instance with the credential of one of its APIs. */
  connectTo(api: ApiKind): Promise<Client>
}

/** Finds the ids of the things that a command line names. Asks the instance only where that is needed. */
export class IdResolver {
  readonly #session: CliSession
  readonly #own: OwnConnection
  readonly #clients = new Map<string, Promise<Client>>()

  constructor(session: CliSession, own: OwnConnection) {
    this.#session = session
    this.#own = own
  }

  /**
   * Returns the id of what a value of the placeholder names, or the ids of several. Undefined stays so.
   *
   * @param hint ends the message if nothing matches
   * @throws CommandError if nothing or more than one thing matches
   */
  async resolve<Given extends string | string[] | undefined>(
    placeholder: string,
    given: Given,
    hint = '',
  ): Promise<Given> {
    if (Array.isArray(given))
      return (await Promise.all(given.map((one) => this.resolve(placeholder, one, hint)))) as Given
    const source = this.#sourceOf(placeholder)
    if (given === undefined || isWholeId(given)) return given
    const found = findNamed(await this.#list(source), given, source.words)
    if (found !== null) return found.id as Given
    // The instance knows best what to say of an id that is not there.
    if (BEGINS_LIKE_ID.test(given)) return given
    const project = placeholder === 'SERVER' ? await this.#projectHint(given) : ''
    throw unknownName(given, source.words, project || hint)
  }

  /**
   * Returns the place that the name of a server or a project means: a server's workspace, or a project's directory.
   *
   * @param hint ends the message if nothing matches
   * @throws CommandError if nothing or more than one thing matches
   */
  async resolvePlace(given: string, hint = ''): Promise<ServerPlace> {
    const source = this.#sourceOf('SERVER')
    if (isWholeId(given)) return { serverId: given, directory: undefined }
    const server = findNamed(await this.#list(source), given, source.words)
    if (server !== null) return { serverId: server.id, directory: undefined }
    const project = await this.#findProject(given)
    if (project?.place) return project.place
    if (BEGINS_LIKE_ID.test(given)) return { serverId: given, directory: undefined }
    throw unknownName(given, source.words, hint)
  }

  /**
   * Returns the server that is meant where none is named: the one of `berth use`, else the only one.
   *
   * @param how says how one is named, for the message
   * @throws CommandError if there is none, or more than one
   */
  async chosenServer(how: string): Promise<string> {
    const source = this.#sourceOf('SERVER')
    const [{ USED_SERVERS, deletedChoice }, client] = await Promise.all([
      import('./directory-choices.ts'),
      this.#connectFor(source.access),
    ])
    const all = await source.list(client)
    const used = USED_SERVERS.find(this.#session.context, client.baseUrl, (given) =>
      all.some(({ id }) => id === given),
    )
    if (used === null)
      return pickOnly(all, source.words, `${how}, or choose one for this directory with "berth use SERVER"`)
        .id
    if (all.some(({ id }) => id === used.id)) return used.id
    throw new CommandError(deletedChoice(used))
  }

  /** Returns what to do if the name of a server is that of a project; empty if it is not. */
  async #projectHint(given: string): Promise<string> {
    const found = await this.#findProject(given)
    if (!found) return ''
    const server = found.place === undefined ? '' : `, ${found.place.serverId}`
    return ` ${found.id} is a project of that name: name its server instead${server}, where its files are in projects/.`
  }

  /** Returns the project of a name. */
  async #findProject(given: string): Promise<Named | undefined> {
    const projects = this.#session.names.get('PROJECT')
    // A command of the control API may have no key to ask with.
    const all = projects ? await this.#list(projects).catch(() => []) : []
    return all.find(({ names = [] }) => names.includes(given))
  }

  #sourceOf(placeholder: string): AccessibleSource & { words: NameWords } {
    const source = this.#session.names.get(placeholder)
    const words = source?.words
    if (!source || !words) throw new Error(`Nothing is looked up by ${placeholder}.`)
    return { ...source, words }
  }

  async #list(source: AccessibleSource): Promise<Named[]> {
    return source.list(await this.#connectFor(source.access))
  }

  /** Connects for a look-up, which may need another credential than the command. */
  async #connectFor(access: 'api' | 'control'): Promise<Client> {
    if (access === this.#own.access) return this.#own.connect()
    let client = this.#clients.get(access)
    if (client === undefined) {
      client = this.#own.connectTo(access)
      this.#clients.set(access, client)
    }
    return client.catch((error: unknown) => {
      if (!(error instanceof CommandError)) throw error
      throw new CommandError(`${error.message} Or name it by its whole id, which needs no look-up.`)
    })
  }
}
