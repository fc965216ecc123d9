import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import { systemRandom } from '../../runtime/random.ts'
import { ENGINE } from '../../storage/state.ts'
import { digestOf } from './names.ts'

/**
 * What a data directory notes of its servers on engines: its own id, and the storages that hold nothing of anybody yet. It
 * is in the data directory and in no database, so both outlive the loss of that.
 */
export class EngineNotes {
  readonly #directory: string
  #owner: string | null = null

  /** @param dataDir absolute path of the data directory */
  constructor(dataDir: string) {
    this.#directory = join(dataDir, ENGINE)
  }

  /** The id of the data directory on engines, 16 hex digits: made at the first use, and the same from then on. */
  get owner(): string {
    this.#owner ??= this.#readOwner() ?? this.#makeOwner()
    return this.#owner
  }

  /** Whether this data directory has ever had an engine. */
  get hasOwner(): boolean {
    return this.#owner !== null || this.#readOwner() !== null
  }

  /** Notes that a storage is made and belongs to nobody yet. */
  begin(storage: string): void {
    mkdirSync(this.#new, { recursive: true })
    writeFileSync(join(this.#new, storage), '')
  }

  /** Notes that a storage is somebody's, or gone. */
  end(storage: string): void {
    rmSync(join(this.#new, storage), { force: true })
  }

  /** The storages that were begun and not ended. */
  get begun(): ReadonlySet<string> {
    return new Set(ifPresent(() => readdirSync(this.#new)) ?? [])
  }

  get #new(): string {
    return join(this.#directory, 'new')
  }

  #readOwner(): string | null {
    const text = ifPresent(() => readFileSync(join(this.#directory, 'owner'), 'utf8').trim())
    return text !== null && /^[0-9a-f]{16}$/.test(text) ? text : null
  }

  #makeOwner(): string {
    const owner = digestOf(Buffer.from(systemRandom.bytes(32)).toString('hex'), 16)
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    writeFileSync(join(this.#directory, 'owner'), `${owner}\n`, { mode: 0o600 })
    return owner
  }
}

/** Reports whether servers of a data directory were ever on an engine. */
export const hasEngineNotes = (dataDir: string): boolean => new EngineNotes(dataDir).hasOwner
