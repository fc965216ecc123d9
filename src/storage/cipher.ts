import { KEY_LENGTH } from '../runtime/key-text.ts'
import { systemRandom } from '../runtime/random.ts'

const ALGORITHM = 'aes-256-gcm'
/** First byte of what is sealed; another one will tell another way of sealing. */
const FORMAT = 1
/** Bytes of a nonce; at random, some 2^32 values may be sealed under one key (NIST SP 800-38D, 8.3). */
const NONCE = 12
const TAG = 16

/**
 * Seals secrets for the database: AES-256-GCM under one key, each with a nonce of its own.
 *
 * A value is bound to its context, such as `api_keys key_…`: the table and row that it belongs to. Moved
 * to another row it does not open, so that whoever can write the database cannot swap secrets.
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
   * Tells whether two texts are the same without keeping either: an HMAC-SHA256 under a key of its own for each
   * purpose, so that a short secret in the text cannot be guessed from it.
   *
   * @param purpose such as `idempotency`
   */
  fingerprint(text: string, purpose: string): Buffer {
    const key = new Bun.CryptoHasher('sha256', this.#key).update(`berth fingerprint ${purpose}`).digest()
    return new Bun.CryptoHasher('sha256', key).update(text).digest()
  }

  /** What was sealed. @throws Error for another key, another context or changed bytes */
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
