import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { badRequest, notFound } from '../../errors.ts'
import type { ClockState } from '../../runtime/clock.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { runHelper } from '../../runtime/run-helper.ts'
import { copyTrees } from '../../storage/copy-tree.ts'
import { SCHEMA } from '../../storage/migrate.ts'
import { writePrivate } from '../../storage/private-file.ts'
import { removeTree, removeTreeAside } from '../../storage/remove-tree.ts'
import { stateEntries } from '../../storage/state.ts'

/** What a snapshot says of itself. */
export interface SnapshotFile {
  name: string
  /** ISO 8601. */
  created_at: string
  /** The version of the berth that made it, and the number of its schema. */
  version: string
  schema: number
  /** Bytes that its files take. */
  bytes: number
  clock: ClockState
}

/** A snapshot as it is listed. */
export type Snapshot = Omit<SnapshotFile, 'clock'>

/** The names of the database's files: they are copied by the database itself. */
const DATABASE = /^berth\.db(?:-.+)?$/

const NAME = /^(?!\.)[\w.-]{1,100}$/

/**
 * Copies of the state of one data folder, each a folder below `snapshots`. They lie beside the state: a reset leaves
 * them, and a snapshot holds no other.
 */
export class Snapshots {
  readonly #path: string
  readonly #folder: string

  /** @param path the data folder */
  constructor(path: string) {
    this.#path = path
    this.#folder = join(path, 'snapshots')
  }

  /** All of them but damaged ones, newest first. */
  list(): Snapshot[] {
    const names = ifPresent(() => readdirSync(this.#folder))
    return (names ?? [])
      .map((name) => this.#read(name))
      .filter((file) => file !== null)
      .sort((a, b) => (a.created_at < b.created_at ? 1 : -1))
      .map(shown)
  }

  /**
   * Keeps the state as it is under a name, in place of an earlier one of that name; whole, or not at all.
   *
   * @param copyDatabase writes the database's copy to a path where nothing is
   * @param signal gives it up
   * @throws BerthError 400 for a name that is none
   */
  async save(
    file: Omit<SnapshotFile, 'schema' | 'bytes'>,
    copyDatabase: (path: string) => void,
    signal?: AbortSignal,
  ): Promise<Snapshot> {
    checkName(file.name)
    const place = join(this.#folder, file.name)
    const fresh = join(this.#folder, `.new-${file.name}`)
    try {
      removeTree(fresh)
      mkdirSync(fresh, { recursive: true, mode: 0o700 })
      copyDatabase(join(fresh, 'berth.db'))
      await copyTrees(
        stateEntries(this.#path)
          .filter((name) => !DATABASE.test(name))
          .map((name) => join(this.#path, name)),
        fresh,
        signal,
      )
      const content: SnapshotFile = { ...file, schema: SCHEMA, bytes: await bytesOf(fresh) }
      writePrivate(join(fresh, 'snapshot.json'), `${JSON.stringify(content, null, 2)}\n`)
      const old = join(this.#folder, `.old-${file.name}`)
      removeTree(old)
      if (existsSync(place)) renameSync(place, old)
      renameSync(fresh, place)
      await removeTreeAside(old)
      return shown(content)
    } catch (error) {
      removeTree(fresh)
      throw error
    }
  }

  /**
   * Copies a snapshot's state into a folder.
   *
   * @param signal gives it up
   * @throws BerthError 404, 400 where a newer berth made it or it is damaged
   */
  async copyTo(name: string, folder: string, signal?: AbortSignal): Promise<SnapshotFile> {
    if (!this.#has(name)) throw notFound(`The snapshot ${JSON.stringify(name)}`)
    const file = this.#read(name)
    if (file === null) {
      throw badRequest(
        `The snapshot "${name}" cannot be read: its snapshot.json is damaged. Remove it with "berth snapshot rm ${name}".`,
      )
    }
    if (file.schema > SCHEMA) {
      throw badRequest(
        `The snapshot "${name}" was made by berth ${file.version} (schema ${file.schema}), which is newer than this one (schema ${SCHEMA}). Restore it with that version.`,
      )
    }
    const place = join(this.#folder, name)
    const entries = readdirSync(place).filter((entry) => entry !== 'snapshot.json')
    await copyTrees(
      entries.map((entry) => join(place, entry)),
      folder,
      signal,
    )
    return file
  }

  /** Removes a snapshot. @throws BerthError 404 */
  async remove(name: string): Promise<void> {
    if (!this.#has(name)) throw notFound(`The snapshot ${JSON.stringify(name)}`)
    // Gone by its name at once: half of one is never found.
    const gone = join(this.#folder, `.gone-${name}`)
    removeTree(gone)
    renameSync(join(this.#folder, name), gone)
    await removeTreeAside(gone)
  }

  /** Removes what a killed process has left of snapshots that it was making, replacing or removing. */
  sweep(): void {
    if (!existsSync(this.#folder)) return
    const left = readdirSync(this.#folder)
    for (const name of left.flatMap((entry) => (entry.startsWith('.old-') ? [entry.slice(5)] : []))) {
      // Its successor was about to take its name: the old one stands.
      if (!left.includes(name)) renameSync(join(this.#folder, `.old-${name}`), join(this.#folder, name))
    }
    for (const name of readdirSync(this.#folder)) {
      if (name.startsWith('.')) removeTree(join(this.#folder, name))
    }
  }

  #has(name: string): boolean {
    return NAME.test(name) && existsSync(join(this.#folder, name, 'snapshot.json'))
  }

  /** Null where there is none of the name, and where it is damaged. */
  #read(name: string): SnapshotFile | null {
    if (!this.#has(name)) return null
    try {
      return JSON.parse(readFileSync(join(this.#folder, name, 'snapshot.json'), 'utf8')) as SnapshotFile
    } catch {
      return null
    }
  }
}

const shown = ({ clock: _, ...rest }: SnapshotFile): Snapshot => rest

function checkName(name: string): void {
  if (NAME.test(name)) return
  throw badRequest(
    `"name" in the body: expected 1 to 100 letters, digits, dots, underscores and hyphens, with no dot first, got ${JSON.stringify(name)}.`,
  )
}

async function bytesOf(folder: string): Promise<number> {
  const { stdout } = await runHelper(['du', '-s', '-k', '--', folder], { onStderr: () => {} })
  const kib = Number.parseInt(stdout, 10)
  return Number.isNaN(kib) ? statSync(folder).size : kib * 1024
}
