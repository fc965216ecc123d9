/** Encrypts secrets for the database with AES-256-GCM, each bound to its row. */
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { StartupError } from '../errors.ts'
import { KEY_LENGTH, parseKeyText } from '../runtime/key-text.ts'
import { systemRandom } from '../runtime/random.ts'
import type { DataDirectory } from './data-directory.ts'
import { openDatabase, type Queries } from './database.ts'

const ALGORITHM = 'aes-256-gcm'
/** First byte of a sealed value; identifies the format. */
const FORMAT = 1
/** Bytes of a nonce; at random, some 2^32 values may be sealed under one key (NIST SP 800-38D, 8.3). */
const NONCE = 12
const TAG = 16

/**
 * Seals secrets for the database: AES-256-GCM under one key, with a new nonce for each.
 *
 * A value is bound to its context, such as `api_keys key_…`: its table and row. It does not open in another row, so
 * write access to the database is not enough to swap secrets.
 */
export class Cipher {
  readonly #key: Uint8Array

  /** @param key 32 bytes */
  constructor(key: Uint8Array) {
    if (key.length !== KEY_LENGTH) throw new RangeError(`A key has ${KEY_LENGTH} bytes.`)
    this.#key = key
  }

  /** Format byte, nonce, ciphertext and tag, one behind the other. */
  seal(plaintext: string, context: string): Buffer {
    const nonce = systemRandom.bytes(NONCE)
    const cipher = nodeCrypto().createCipheriv(ALGORITHM, this.#key, nonce)
    cipher.setAAD(Buffer.from(context))
    const sealed = [Buffer.of(FORMAT), nonce, cipher.update(plaintext, 'utf8'), cipher.final()]
    return Buffer.concat([...sealed, cipher.getAuthTag()])
  }

  /**
   * Returns a fingerprint to compare texts without storing them: an HMAC-SHA256 with a separate key for each purpose,
   * so a short secret in the text cannot be guessed from it.
   *
   * @param purpose such as `idempotency`
   */
  fingerprint(text: string, purpose: string): Buffer {
    const key = new Bun.CryptoHasher('sha256', this.#key).update(`berth fingerprint ${purpose}`).digest()
    return new Bun.CryptoHasher('sha256', key).update(text).digest()
  }

  /**
   * Opens a sealed value.
   *
   * @throws Error for another key, another context or changed bytes
   */
  open(sealed: Uint8Array, context: string): string {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
    if (bytes.length < 1 + NONCE + TAG || bytes[0] !== FORMAT) {
      throw new Error(`what is kept for ${context} was not sealed by this berth`)
    }
    const nonce = bytes.subarray(1, 1 + NONCE)
    const decipher = nodeCrypto().createDecipheriv(ALGORITHM, this.#key, nonce, { authTagLength: TAG })
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(bytes.subarray(-TAG))
    return decipher.update(bytes.subarray(1 + NONCE, -TAG), undefined, 'utf8') + decipher.final('utf8')
  }
}

/** Loaded at the first use: a start would wait milliseconds for it. WebCrypto would make every use asynchronous. */
const nodeCrypto = () => process.getBuiltinModule('node:crypto')

/** The database keeps this text's HMAC under the right master key, in the one row of master_key_check. */
const CHECKED_TEXT = 'berth master key check'

/** The sources of the master key. */
interface MasterKeySources {
  queries: Queries
  dataDirectory: Pick<DataDirectory, 'path' | 'readMasterKey' | 'writeMasterKey'>
  /** The key of `BERTH_MASTER_KEY`, which overrides the directory's file. */
  configured: Uint8Array | null
}

/**
 * Returns the cipher under the instance's master key: the given one, else the data directory's `master.key`,
 * which the first start makes. Only the key that secrets were sealed under before opens the directory.
 *
 * @throws StartupError if the key is missing, unreadable or another one
 */
export function openCipher({ queries, dataDirectory, configured }: MasterKeySources): Cipher {
  // Plain statements: the first use of a table's builder takes a start a millisecond.
  const check = queries.values<[Uint8Array]>(sql`SELECT hmac FROM master_key_check`)[0]?.[0]
  const kept = configured === null ? readKey(dataDirectory) : null
  const key = configured ?? kept ?? (check ? null : systemRandom.bytes(KEY_LENGTH))
  if (key === null) {
    throw new StartupError(
      `The master key of ${dataDirectory.path} is missing, without which its secrets cannot be read. Restore master.key there or set BERTH_MASTER_KEY, or start anew with another --data directory.`,
    )
  }
  const hmac = new Bun.CryptoHasher('sha256', key).update(CHECKED_TEXT).digest()
  if (check && !(check.length === hmac.length && crypto.timingSafeEqual(check, hmac))) {
    throw new StartupError(
      configured
        ? `BERTH_MASTER_KEY is not the key that the secrets of ${dataDirectory.path} are encrypted under. Set it to that one, unset it if the directory has a master.key of its own, or start anew with another --data directory.`
        : `${dataDirectory.path}/master.key is not the key that the directory's secrets are encrypted under. Restore it or set BERTH_MASTER_KEY, or start anew with another --data directory.`,
    )
  }
  // Write the file first: after a crash in between, nothing is sealed under its key yet.
  if (!configured && !kept) dataDirectory.writeMasterKey(`${Buffer.from(key).toString('base64')}\n`)
  if (!check) queries.run(sql`INSERT INTO master_key_check (id, hmac) VALUES (1, ${hmac})`)
  return new Cipher(key)
}

function readKey(dataDirectory: MasterKeySources['dataDirectory']): Uint8Array | null {
  const text = dataDirectory.readMasterKey()
  if (text === null) return null
  const key = parseKeyText(text)
  if (key) return key
  throw new StartupError(
    `${dataDirectory.path}/master.key does not hold a key: expected 32 bytes as base64 or hex. Restore it or set BERTH_MASTER_KEY, or start anew with another --data directory.`,
  )
}

/** The keys for a state's secrets. */
type Keys = Omit<Parameters<typeof openCipher>[0], 'queries'>

/**
 * Checks that a state can be opened, and migrates its schema.
 *
 * @param path its directory
 * @throws StartupError if it cannot be used
 */
export function checkState(path: string, keys: Keys): void {
  const database = openDatabase(join(path, 'berth.db'))
  try {
    openCipher({ queries: database.queries, ...keys })
  } finally {
    database.close()
  }
}
