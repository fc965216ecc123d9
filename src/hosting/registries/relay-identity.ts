import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fieldsOf } from '../../runtime/is-object.ts'
import { base62, type Random } from '../../runtime/random.ts'
import { writePrivate } from '../../storage/files.ts'

/** The file with what stays between starts. */
const FILE = 'relay.json'

/** Length of a credential: as many bits as SHA-256 has. */
const LENGTH = 43

/**
 * What a relay's addresses consist of, the same after a restart: caches of pip, Cargo and others know packages by their
 * addresses, which have the port and the credential of a server.
 */
export class RelayIdentity {
  readonly #directory: string
  readonly #random: Random
  #kept: { port: number; secret: string } | null = null

  /** @param directory absolute path of the directory to keep it in */
  constructor(directory: string, random: Random) {
    this.#directory = directory
    this.#random = random
  }

  /** The port of the last start; 0 if there was none. */
  get port(): number {
    return this.#read().port
  }

  set port(port: number) {
    if (port !== this.port) this.#write({ ...this.#read(), port })
  }

  /** Returns a server's credential, which nobody can compute from that of another. */
  tokenOf(serverId: string): string {
    const { secret } = this.#read()
    const digest = (count: number): Uint8Array =>
      new Bun.CryptoHasher('sha256', secret).update(`${serverId} ${count}`).digest()
    let count = 0
    return base62({ bytes: (length) => digest(count++).slice(0, length) }, LENGTH)
  }

  #read(): { port: number; secret: string } {
    this.#kept ??= this.#load() ?? this.#write({ port: 0, secret: base62(this.#random, LENGTH) })
    return this.#kept
  }

  #load(): { port: number; secret: string } | null {
    try {
      const { port, secret } = fieldsOf(JSON.parse(readFileSync(join(this.#directory, FILE), 'utf8')))
      const isValid = Number.isInteger(port) && typeof secret === 'string' && secret.length === LENGTH
      return isValid ? { port: Number(port), secret } : null
    } catch {
      // There is none yet, or it is damaged.
      return null
    }
  }

  #write(kept: { port: number; secret: string }): { port: number; secret: string } {
    this.#kept = kept
    try {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
      writePrivate(join(this.#directory, FILE), JSON.stringify(kept))
    } catch {
      // The disk may be full: it holds until the next start.
    }
    return kept
  }
}
