import { KEY_LENGTH } from '../runtime/key-text.ts'
import { systemRandom } from '../runtime/random.ts'

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
