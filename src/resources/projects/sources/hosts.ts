import { addressKind, isAddress, LOCAL_NAME, LOCALHOST } from '../../../runtime/address.ts'
import type { InterfaceAddresses } from '../../../system/interface-addresses.ts'
import type { ResolveHost } from './environment.ts'
import { SourceError } from './errors.ts'

/** Ranges of this machine and private networks, which `allowLocal` permits. Link-local ranges are never permitted. */
const LOCAL_KINDS = new Set(['loopback', 'private', 'uniqueLocal'])

/** The hosts from which code may be fetched. */
export interface HostRules {
  /** This machine and private networks are allowed too. */
  allowLocal: boolean
  resolve: ResolveHost
  /** The addresses of this machine. */
  ownAddresses: InterfaceAddresses
}

/** The rules for what needs no look-up. */
export type AddressRules = Omit<HostRules, 'resolve'>

/** A host of which no address is known now: it may have one later. */
export class UnresolvedHost extends SourceError {}

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
export async function checkHost(host: string, rules: HostRules): Promise<CheckedHost> {
  const { resolve, ownAddresses } = rules
  const name = normalizeHost(host)
  checkName(name, rules)
  const literal = isAddress(name)
  const addresses = literal ? [name] : await resolve(name).catch(() => [])
  if (addresses.length === 0)
    throw new UnresolvedHost(`The host "${name}" does not resolve. Check the url, or try again.`)
  for (const address of addresses)
    checkAddress(address, literal ? address : `"${name}" resolves to ${address}, which`, rules)
  return {
    addresses,
    local: addresses.every((address) => LOCAL_KINDS.has(addressKind(address, ownAddresses))),
  }
}

/** Checks a name as far as that needs no DNS lookup. @throws SourceError */
export function checkName(host: string, rules: AddressRules): void {
  const name = normalizeHost(host)
  if (!rules.allowLocal && (LOCALHOST.test(name) || LOCAL_NAME.test(name))) {
    throw new SourceError(
      `Code is fetched from public addresses only, and "${name}" is a name of a private network.`,
    )
  }
  if (isAddress(name)) checkAddress(name, name, rules)
}

/** Refuses an address that no code may be fetched from. @param what the subject of the message */
function checkAddress(address: string, what: string, { allowLocal, ownAddresses }: AddressRules): void {
  const kind = addressKind(address, ownAddresses)
  if (kind === 'public' || (allowLocal && LOCAL_KINDS.has(kind))) return
  throw new SourceError(
    allowLocal
      ? `Code is fetched from public, loopback and private addresses only, and ${what} is not one (${kind}).`
      : `Code is fetched from public addresses only, and ${what} is not one (${kind}).`,
  )
}

/** Removes brackets and a trailing dot, and converts to lower case. */
const normalizeHost = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
