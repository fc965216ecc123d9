import { badRequest } from '../../../../errors.ts'

/** A user and a password or token. */
export interface Credentials {
  user: string
  password: string
}

/** A repository's location. Only `credentials` contains credentials. */
export type GitLocation =
  | { scheme: 'https'; url: string; host: string; port: number; credentials: Credentials | null }
  | { scheme: 'ssh'; url: string; host: string; port: number }
  | { scheme: 'file'; path: string }

const USER = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/
/** No leading dash: it would be an option to `ssh`. */
const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9a-f:.]+\])$/i
/** The port of ssh, whose host keys have no port in their name. */
export const SSH_PORT = 22
const SHORT = /^([^@/:]+)@([^@/:]+):([^:].*)$/

/**
 * Parses the URL of a repository: https, ssh, `user@host:path`, or a directory of this machine as `file://` or absolute
 * path. Refuses everything else that git accepts, such as `ext::`, which runs a command.
 *
 * @throws BerthError 400 that names `source.url` and repeats no part that may be a credential
 */
export function parseGitUrl(text: string): GitLocation {
  if (/[\p{Cc}\p{Z}\\]/u.test(text)) throw refused('it has spaces, control characters or backslashes')
  if (text.startsWith('/')) return folder(text)
  const [scheme] = /^[a-z][a-z0-9+.-]*(?=:\/\/)/i.exec(text) ?? []
  switch (scheme?.toLowerCase()) {
    case 'https':
      return https(parse(text))
    case 'ssh':
      return ssh(parse(text))
    case 'file':
      return file(parse(text))
    case 'http':
      throw refused('http shows code and credentials to everybody on the way; use https')
    case undefined:
      return short(text)
    default:
      throw refused(`${scheme}:// is not taken; ${EXPECTED}`)
  }
}

const EXPECTED = 'use https://, ssh://, git@host:path or the absolute path of an allowed directory'

function https(url: URL): GitLocation {
  if (url.search !== '' || url.hash !== '') throw refused('it has a "?" or "#"')
  if (url.port === '0') throw refused('port 0 cannot be connected to')
  // git is given the host as it is checked: curl takes `host.` for another one than `host`, and would look it up again.
  const host = url.hostname.replace(/\.$/, '')
  if (host === '' || host.endsWith('.') || host.includes('..')) throw refused('its host is not a host name')
  const credentials =
    url.username === '' && url.password === ''
      ? null
      : { user: decoded(url.username), password: decoded(url.password) }
  return {
    scheme: 'https',
    url: `https://${host}${url.port && `:${url.port}`}${url.pathname}`,
    host,
    port: url.port === '' ? 443 : Number(url.port),
    credentials,
  }
}

function ssh(url: URL): GitLocation {
  if (url.password !== '')
    throw refused('ssh takes no password; berth uses the ssh agent that it was started with')
  if (url.search !== '' || url.hash !== '') throw refused('it has a "?" or "#"')
  if (url.username !== '' && !USER.test(url.username)) throw refused('its user is not one that ssh accepts')
  if (!HOST.test(url.hostname)) throw refused('its host is not a host name')
  if (!/^\/[^-/]/.test(url.pathname)) throw refused('its path is missing or begins with a dash')
  const user = url.username === '' ? '' : `${url.username}@`
  return {
    scheme: 'ssh',
    url: `ssh://${user}${url.host}${url.pathname}`,
    host: url.hostname,
    port: url.port === '' ? SSH_PORT : Number(url.port),
  }
}

/** `user@host:path`, as forges show it. */
function short(text: string): GitLocation {
  const [, user = '', host = '', path = ''] = SHORT.exec(text) ?? []
  if (host === '') {
    throw refused(
      /^[a-z][a-z0-9+.-]*::/i.test(text) ? EXPECTED : `it is a relative path or no URL; ${EXPECTED}`,
    )
  }
  if (!USER.test(user)) throw refused('its user is not one that ssh accepts')
  if (!HOST.test(host)) throw refused('its host is not a host name')
  if (path.startsWith('-')) throw refused('its path begins with a dash')
  return { scheme: 'ssh', url: text, host, port: SSH_PORT }
}

function file(url: URL): GitLocation {
  if (url.hostname !== '' && url.hostname !== 'localhost') throw refused('file:// leads to this machine only')
  if (url.search !== '' || url.hash !== '') throw refused('it has a "?" or "#"')
  return folder(decoded(url.pathname))
}

function folder(path: string): GitLocation {
  if (path.includes('\0')) throw refused('it has a NUL byte')
  return { scheme: 'file', path }
}

function parse(text: string): URL {
  const url = URL.parse(text)
  if (url) return url
  throw refused(`it is not a valid URL; ${EXPECTED}`)
}

function decoded(text: string): string {
  try {
    const plain = decodeURIComponent(text)
    if (!/\p{Cc}/u.test(plain)) return plain
  } catch {
    // Not valid percent-encoding.
  }
  throw refused('it has a "%" that encodes no character')
}

const refused = (why: string) =>
  badRequest(`"source.url" in the body: no git repository can be taken from there: ${why}.`)
