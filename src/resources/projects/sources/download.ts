import { createWriteStream } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { percentDecoded } from '../../../runtime/decode.ts'
import { codeOf, messageOf } from '../../../runtime/error-info.ts'
import { Masks } from '../../../runtime/masks.ts'
import { orAborted } from '../../../runtime/wait.ts'
import type { ProcessEnvironment } from './environment.ts'
import { SourceError } from './errors.ts'
import { type CheckedHost, checkHost, type HostRules } from './hosts.ts'
import { formatMebibytes, type SourceLimits } from './limits.ts'

/** @bound peer */
const MAX_REDIRECTS = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Codes of errors before anything was sent. Another address of the same name may work. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'ENETDOWN'])

/** The options of `download`. */
interface DownloadOptions {
  hosts: HostRules
  limits: SourceLimits
  /** Certificates of trusted authorities, as PEM, instead of the system's. */
  ca: string | null
  signal: AbortSignal
}

/**
 * Fetches a URL into a file. Checks every host, and connects only to a checked address. Follows a few redirects;
 * sends the URL's credentials only to its own origin.
 *
 * @throws SourceError without credentials and without the query, which may contain some; the signal's reason
 */
export async function download(text: string, file: string, options: DownloadOptions): Promise<void> {
  let url = parseArchiveUrl(text, options.hosts.allowLocal)
  const { origin, username, password } = url
  const masks = new Masks()
  masks.add([password, username].map(tryDecode).flatMap((secret) => [secret, encodeURI(secret)]))
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    options.signal.throwIfAborted()
    const host = await orAborted(checkHost(url.hostname, options.hosts), options.signal)
    checkScheme(url.protocol, host)
    const credentials = url.origin === origin ? { username, password } : null
    const response = await get(url, host, credentials, options).catch((error) => {
      options.signal.throwIfAborted()
      throw new SourceError(
        `The archive could not be fetched from ${displayUrl(url)}: ${masks.mask(textOf(error))}.`,
      )
    })
    const status = response.statusCode ?? 0
    if (status === 200) return await save(response, file, options, displayUrl(url))
    response.destroy()
    const { location } = response.headers
    if (!REDIRECTS.has(status) || location === undefined) {
      throw new SourceError(`The archive could not be fetched: ${displayUrl(url)} answered with ${status}.`)
    }
    const next = URL.parse(location, url.href)?.href ?? location
    url = parseArchiveUrl(next, options.hosts.allowLocal)
  }
  throw new SourceError(
    `The archive could not be fetched: it was redirected more than ${MAX_REDIRECTS} times.`,
  )
}

/** Returns the URL of an archive. @throws SourceError that does not repeat it */
export function parseArchiveUrl(text: string, allowLocal: boolean): URL {
  const url = /[\p{Cc}\p{Z}\\]/u.test(text) ? null : URL.parse(text)
  const isAllowed = url?.protocol === 'https:' || (allowLocal && url?.protocol === 'http:')
  if (url === null || !isAllowed || !/^[a-z]+:\/\/[^/]/i.test(text) || url.port === '0') {
    throw new SourceError('An archive is fetched from an https:// URL.')
  }
  return url
}

/** Refuses http for a host that is not of this machine or a private network. @throws SourceError */
export function checkScheme(protocol: string, { local }: CheckedHost): void {
  if (protocol === 'https:' || local) return
  throw new SourceError(
    'From a public host an archive is fetched over https only. Use https://, or a host of this machine or a private network.',
  )
}

function get(
  url: URL,
  { addresses }: CheckedHost,
  credentials: { username: string; password: string } | null,
  { ca, signal }: DownloadOptions,
): Promise<IncomingMessage> {
  const secure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const attempt = (address: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const family = address.includes(':') ? 6 : 4
      const options: RequestOptions = {
        host,
        port: url.port || (secure ? 443 : 80),
        path: `${url.pathname}${url.search}`,
        headers: { host: url.host, 'user-agent': 'berth', accept: '*/*', 'accept-encoding': 'identity' },
        agent: false,
        signal,
        lookup: (_name, { all }, give) =>
          all ? give(null, [{ address, family }]) : give(null, address, family),
        ...(secure && host !== address ? { servername: host } : {}),
        ...(ca ? { ca } : {}),
        ...(credentials && (credentials.username || credentials.password)
          ? { auth: `${tryDecode(credentials.username)}:${tryDecode(credentials.password)}` }
          : {}),
      }
      const sent = (secure ? httpsRequest : httpRequest)(options, resolve)
      sent.on('error', reject)
      sent.end()
    })
  return addresses.slice(1).reduce(
    (response, address) =>
      response.catch((error) => {
        if (NOT_CONNECTED.has(codeOf(error) ?? '')) return attempt(address)
        throw error
      }),
    attempt(addresses[0] ?? ''),
  )
}

async function save(
  response: IncomingMessage,
  file: string,
  options: DownloadOptions,
  from: string,
): Promise<void> {
  const { limits, signal } = options
  const declared = Number(response.headers['content-length'] ?? 0)
  if (declared > limits.archiveBytes) {
    response.destroy()
    throw tooLong(limits)
  }
  let received = 0
  const counted = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      received += chunk.length
      if (received > limits.archiveBytes) done(tooLong(limits))
      else done(null, chunk)
    },
  })
  try {
    await pipeline(response, counted, createWriteStream(file, { flags: 'wx', mode: 0o600 }), { signal })
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof SourceError) throw error
    throw new SourceError(`The archive could not be fetched from ${from} to its end: ${textOf(error)}.`)
  } finally {
    response.destroy()
  }
  if (declared > 0 && received !== declared) {
    throw new SourceError(`The archive could not be fetched from ${from} to its end: it was cut short.`)
  }
}

const tooLong = ({ archiveBytes }: SourceLimits): SourceError =>
  new SourceError(`The archive has more than ${formatMebibytes(archiveBytes)}, which is the limit.`)

/** Returns a URL for messages: without user and query, which may be credentials. */
const displayUrl = (url: URL): string => `${url.origin}${url.pathname}`

const textOf = (error: unknown): string => {
  return (messageOf(error) || codeOf(error) || String(error)).replace(/\.$/, '')
}

const tryDecode = (text: string): string => percentDecoded(text) ?? text

/**
 * Returns the certificates that `SSL_CERT_FILE` names, as PEM, or null without it.
 *
 * @throws SourceError if it cannot be read
 */
export async function readAuthorityFile({ SSL_CERT_FILE: path }: ProcessEnvironment): Promise<string | null> {
  if (!path) return null
  try {
    return await Bun.file(path).text()
  } catch {
    throw new SourceError(
      'The file of SSL_CERT_FILE cannot be read. Correct the variable and start berth again.',
    )
  }
}
