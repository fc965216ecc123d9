import { badRequest } from '../../../errors.ts'
import { checkScheme, parseArchiveUrl } from './download.ts'
import { SourceError } from './errors.ts'
import { findRepository } from './git/local-repository.ts'
import { parseGitUrl } from './git/location.ts'
import { type AddressRules, checkHost, checkName, type HostRules, UnresolvedHost } from './hosts.ts'
import type { ArchiveSource, GitSource, ProjectSource } from './model.ts'

/** Milliseconds that a request waits for a DNS lookup. */
const LOOKUP_MS = 2_000

/** The rules that a source is checked against. */
interface CheckRules extends AddressRules {
  sourceFolders: readonly string[]
}

/** Refuses an invalid source without fetching. See `Sources.check`. @throws BerthError 400 */
export function checkSource(source: ProjectSource, upload: boolean, rules: CheckRules): void {
  if (upload && source.type !== 'archive') {
    throw badRequest(
      `"source.type" in the body: expected "archive" with an uploaded file, got "${source.type}".`,
    )
  }
  if (source.type === 'git') checkGit(source, rules)
  if (source.type === 'archive') checkArchive(source, upload, rules)
}

function checkGit({ url }: GitSource, { sourceFolders, ...rules }: CheckRules): void {
  const location = parseGitUrl(url)
  asBadRequest('source.url', () => {
    if (location.scheme === 'file') findRepository(location.path, sourceFolders)
    else checkName(location.host, rules)
  })
}

function checkArchive({ url, data }: ArchiveSource, upload: boolean, rules: CheckRules): void {
  const given = [url !== undefined, data !== undefined, upload].filter(Boolean).length
  if (given !== 1) {
    throw badRequest(
      '"source" in the body: expected an archive in one of "url", "data" and the uploaded file, '.concat(
        given === 0 ? 'got none.' : 'got several.',
      ),
    )
  }
  if (url !== undefined) {
    asBadRequest('source.url', () => checkName(parseArchiveUrl(url, rules.allowLocal).hostname, rules))
  }
}

/**
 * Refuses the http URL of an archive on a public host, or on one whose addresses are not allowed. Accepts a host that does not resolve within `LOOKUP_MS`: the
 * fetch checks it again.
 *
 * @param url one that `checkSource` accepts
 * @throws BerthError 400
 */
export async function checkPlainUrl(url: string, hosts: HostRules): Promise<void> {
  const { protocol, hostname } = new URL(url)
  if (protocol !== 'http:') return
  const found = checkHost(hostname, hosts).then(
    (host) => () => checkScheme(protocol, host),
    (error) => () => {
      if (!(error instanceof UnresolvedHost)) throw error
    },
  )
  const check = await Promise.race([found, Bun.sleep(LOOKUP_MS).then(() => () => {})])
  asBadRequest('source.url', check)
}

function asBadRequest(field: string, check: () => void): void {
  try {
    check()
  } catch (error) {
    if (error instanceof SourceError) throw badRequest(`"${field}" in the body: ${error.message}`)
    throw error
  }
}
