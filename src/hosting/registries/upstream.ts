import { codeOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import { PackageError } from './problem.ts'

/** Largest size of a package's document, in bytes. @bound peer */
const MAX_DOCUMENT_BYTES = 64 * 2 ** 20

/** Bytes from which a document counts as large. */
const LARGE_DOCUMENT_BYTES = 2 ** 20

/** Time limits in milliseconds for a document and for the revalidation of a cached one. */
const DOCUMENT_MS = 60_000
const REVALIDATION_MS = 10_000

/** Milliseconds without a byte after which a download is aborted. */
const IDLE_TIMEOUT_MS = 60_000

/** Milliseconds between attempts if the registry does not respond. */
const RETRIES_MS = [250, 1_000]

/** Milliseconds for which cached documents are used without asking a registry that was unreachable. */
const DOWN_MS = 30_000

/** Errors of a certificate that only the machine's own authorities may have signed. */
const UNKNOWN_AUTHORITY = /CERT|SELF_SIGNED|UNABLE_TO_(?:GET_ISSUER|VERIFY)/

/** A registry's response to a request for a document. */
export type DocumentResponse =
  | { readonly kind: 'unchanged' }
  | {
      readonly kind: 'document'
      readonly body: Uint8Array
      /** Its media type, without parameters. */
      readonly type: string
      readonly etag: string | null
      /** Where it came from, after redirects. */
      readonly url: string
    }

/** Options of `Upstream`. */
interface UpstreamOptions {
  /** URL of the registry, without a trailing slash. */
  address: string
  /** What a person does if it cannot be reached, or wants a credential; each without a full stop. */
  remedies: { unreachable: string; credential: string }
  /** Returns the certificate authorities of the machine, as PEM. */
  authorities: () => readonly string[]
  logger: Logger
  /** Aborts all requests under way. */
  stopping: AbortSignal
}

/**
 * The registry at one address. The environment's proxies and certificate authorities apply, and where these do not know a
 * certificate, those of the machine. No credential is ever sent.
 */
export class Upstream {
  readonly #options: UpstreamOptions
  #downUntil = 0
  /** The machine's certificate authorities, once the usual ones have failed. */
  #authorities: readonly string[] | null = null

  constructor(options: UpstreamOptions) {
    this.#options = options
  }

  /** URL of the registry, without a trailing slash. */
  get address(): string {
    return this.#options.address
  }

  /** Whether it was unreachable within the last 30 seconds. */
  get isDown(): boolean {
    return performance.now() < this.#downUntil
  }

  /**
   * Requests a document.
   *
   * @param path escaped, with a leading slash
   * @param cached ETag of a cached document to revalidate; the request is then not retried
   * @param onLarge called when the document turns out to be large; the rest is read when it resolves
   * @throws PackageError
   */
  async document(
    path: string,
    accept: string,
    cached: { etag: string | null } | null,
    onLarge: () => Promise<void> = async () => {},
  ): Promise<DocumentResponse> {
    const headers: Record<string, string> = { accept }
    if (cached?.etag) headers['if-none-match'] = cached.etag
    const url = `${this.address}${path}`
    return this.#withRetries(url, cached === null ? RETRIES_MS : [], async () => {
      const timeout = AbortSignal.timeout(cached === null ? DOCUMENT_MS : REVALIDATION_MS)
      const response = await this.#request(url, headers, timeout)
      if (response.status === 304 && cached !== null) return { kind: 'unchanged' }
      const parts: Uint8Array[] = []
      let size = 0
      await readBody(response, url, MAX_DOCUMENT_BYTES, async (part) => {
        parts.push(part)
        size += part.length
        if (size >= LARGE_DOCUMENT_BYTES) await onLarge()
      })
      const [type = ''] = (response.headers.get('content-type') ?? '').split(';')
      const etag = response.headers.get('etag')
      return { kind: 'document', body: Buffer.concat(parts), type, etag, url: response.url }
    })
  }

  /**
   * Downloads a file. Calls `restart` before each attempt, and starts again from the first byte if the download
   * breaks off.
   *
   * @throws PackageError
   */
  async download(
    url: string,
    limit: number,
    write: (part: Uint8Array) => void | Promise<void>,
    restart: () => void | Promise<void>,
  ): Promise<void> {
    await this.#withRetries(url, RETRIES_MS, async () => {
      const idle = new AbortController()
      let timer = setTimeout(() => idle.abort(), IDLE_TIMEOUT_MS)
      try {
        await restart()
        const response = await this.#request(url, { 'accept-encoding': 'identity' }, idle.signal)
        await readBody(response, url, limit, async (part) => {
          clearTimeout(timer)
          timer = setTimeout(() => idle.abort(), IDLE_TIMEOUT_MS)
          await write(part)
        })
      } finally {
        clearTimeout(timer)
      }
    })
  }

  /** Repeats an attempt as long as the registry does not respond. */
  async #withRetries<T>(url: string, retries: readonly number[], attempt: () => Promise<T>): Promise<T> {
    for (const wait of [...retries, null]) {
      try {
        const result = await attempt()
        this.#downUntil = 0
        return result
      } catch (error) {
        const problem = this.#explain(url, error)
        if (!problem.unreachable || this.#options.stopping.aborted) throw problem
        if (wait === null) {
          this.#downUntil = performance.now() + DOWN_MS
          this.#options.logger.warn('the package registry is out of reach', { url, error: problem.message })
          throw problem
        }
        await Bun.sleep(wait)
      }
    }
    throw new Error('unreachable')
  }

  async #request(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const init = {
      headers: { 'user-agent': 'berth', ...headers },
      signal: AbortSignal.any([signal, this.#options.stopping]),
      // The hash is over the stored bytes, so a claimed encoding is not decoded.
      ...(headers['accept-encoding'] === 'identity' ? { decompress: false } : {}),
    }
    const response = await this.#fetch(url, init)
    if (response.ok || response.status === 304) return response
    await response.body?.cancel()
    throw this.#refusal(url, response.status)
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    if (this.#authorities !== null) return fetch(url, { ...init, tls: { ca: [...this.#authorities] } })
    try {
      return await fetch(url, init)
    } catch (error) {
      const known = UNKNOWN_AUTHORITY.test(codeOf(error) ?? '') ? this.#options.authorities() : []
      if (known.length === 0) throw error
      const response = await fetch(url, { ...init, tls: { ca: [...known] } })
      this.#authorities = known
      return response
    }
  }

  #refusal(url: string, status: number): PackageError {
    if (status === 404 || status === 410) return new PackageError(`${url} does not exist (${status}).`, 404)
    if (status === 401 || status === 403) {
      const remedy = this.#options.remedies.credential
      return new PackageError(`The registry refused ${url} (${status}). ${remedy}.`, 424)
    }
    const unreachable = status >= 500 || status === 429 || status === 408
    return new PackageError(`The registry answered ${status} to ${url}.`, 424, unreachable)
  }

  #explain(url: string, error: unknown): PackageError {
    if (error instanceof PackageError) return error
    if (this.#options.stopping.aborted) return new PackageError('berth is being stopped.', 424, true)
    const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
    const cause = /Timeout|Abort/.test(name) ? 'no response in time' : message
    const remedy = this.#options.remedies.unreachable
    return new PackageError(`The registry could not be reached at ${url}: ${cause}. ${remedy}.`, 424, true)
  }
}

async function readBody(
  response: Response,
  url: string,
  limit: number,
  onPart: (part: Uint8Array) => void | Promise<void>,
): Promise<void> {
  const tooLarge = () =>
    new PackageError(`${url} is larger than ${limit} bytes, the most that berth takes.`, 424)
  if (Number(response.headers.get('content-length') ?? 0) > limit) {
    await response.body?.cancel()
    throw tooLarge()
  }
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.byteLength
    if (size > limit) throw tooLarge()
    await onPart(part)
  }
}
