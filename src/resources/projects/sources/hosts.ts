import { addressKind, isAddress, LOCAL_NAME, LOCALHOST } from '../../../http/address.ts'
import type { ResolveHost } from './environment.ts'
import { SourceError } from './errors.ts'

/**
 * Ranges of this machine and of networks around it, which `allowLocal` opens. Link-local ones are never among them.
 */
const LOCAL_KINDS = new Set(['loopback', 'private', 'uniqueLocal'])

/** The hosts from which code may be fetched. */
export interface HostRules {
  /** This machine and private networks are allowed too. */
  allowLocal: boolean
  resolve: ResolveHost
}

/** A host's addresses, all of them allowed. */
export interface CheckedHost {
  addresses: string[]
  /** Whether they are all of this machine or a private network. */
  local: boolean
}

/**
 * Checks a host that code is to be fetched from, so berth does not give access to what only its own machine or
 * network reaches. The connection must then use one of the addresses.
 *
 * @param host as in a URL; IPv6 in brackets
 * @throws SourceError
 */
export async function checkHost(host: string, { allowLocal, resolve }: HostRules): Promise<CheckedHost> {
  const name = plainName(host)
  checkName(name, allowLocal)
  const literal = isAddress(name)
  const addresses = literal ? [name] : await resolve(name).catch(() => [])
  if (addresses.length === 0)
    throw new SourceError(`The host "${name}" does not resolve. Check the url, or try again.`)
  const kinds = addresses.map(addressKind)
  addresses.forEach((address, index) => {
    const kind = kinds[index] ?? ''
    if (kind === 'public' || (allowLocal && LOCAL_KINDS.has(kind))) return
    const what = literal ? address : `"${name}" resolves to ${address}, which`
    throw new SourceError(`Code is fetched from public addresses only, and ${what} is none (${kind}).`)
  })
  return { addresses, local: kinds.every((kind) => LOCAL_KINDS.has(kind)) }
}

/** The part of the check that needs no look-up. @throws SourceError */
export function checkName(host: string, allowLocal: boolean): void {
  const name = plainName(host)
  if (allowLocal) return
  if (LOCALHOST.test(name) || LOCAL_NAME.test(name)) {
    throw new SourceError(
      `Code is fetched from public addresses only, and "${name}" is a name of a private network.`,
    )
  }
  if (!isAddress(name)) return
  const kind = addressKind(name)
  if (kind !== 'public')
    throw new SourceError(`Code is fetched from public addresses only, and ${name} is none (${kind}).`)
}

/** Without brackets and trailing dot, in lower case. */
const plainName = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
