import { closeSync } from 'node:fs'
import { codeOf, messageOf, sentence } from '../../../../runtime/error-info.ts'
import { loadSocketCalls, type SocketCalls, socketAddress, systemErrorCode } from '../socket-calls.ts'

/** Milliseconds that a failed connection took, from which on it is one that got no response. Others fail sooner. */
const SILENCE_MS = 20_000

/** Milliseconds in which a connection that is tried again fails, and those between two looks at it. */
const AGAIN_MS = 5_000
const LOOK_MS = 20

type ConnectCalls = Pick<SocketCalls, 'open' | 'connect' | 'takeError'>

/** A response of the proxy to a connection that failed. */
interface ConnectFailure {
  readonly status: 502 | 504
  /** The cause and the remedy. */
  readonly sentences: string
}

/** Loads the system calls that `explainConnectFailure` asks; null on macOS, where they have other numbers. */
export function loadConnectCalls(): ConnectCalls | null {
  return process.platform === 'linux' ? loadSocketCalls() : null
}

/**
 * Explains why a connection to an address failed. Bun names each cause `ECONNREFUSED`, so the kernel is asked once more.
 *
 * @param place the destination, for people
 * @param tookMs the time after which it failed
 * @param calls of `loadConnectCalls`
 */
export async function explainConnectFailure(
  place: string,
  { address, port }: { readonly address: string; readonly port: number },
  tookMs: number,
  calls: () => ConnectCalls | null,
): Promise<ConnectFailure> {
  if (tookMs >= SILENCE_MS) return explain('ETIMEDOUT', place)
  const loaded = calls()
  return explain(loaded === null ? null : await codeOfConnecting(loaded, address, port), place)
}

/** Explains why a name could not be looked up, with a remedy. @param error of `NameResolver.lookUp` or `NameServer.resolve` */
export function explainLookUpFailure(name: string, error: unknown): string {
  const code = codeOf(error)
  const check = 'Check the nameserver lines of its /etc/resolv.conf.'
  if (code === 'ETIMEOUT') {
    return `The name ${name} could not be looked up: the name servers of this machine do not respond. ${check}`
  }
  if (code === 'ESERVFAIL' || code === 'EREFUSED') {
    return `The name ${name} could not be looked up: the name servers of this machine fail (${code}). ${check}`
  }
  return `The name ${name} could not be looked up: ${sentence(messageOf(error))} Try again.`
}

/** Returns the code of the error with which a connection fails; null if it does not. */
async function codeOfConnecting(
  { open, connect, takeError }: ConnectCalls,
  address: string,
  port: number,
): Promise<string | null> {
  const fd = open(address)
  if (fd < 0) return null
  try {
    let error = connect(fd, socketAddress(address, port))
    const end = performance.now() + AGAIN_MS
    while (error === 0 && performance.now() < end) {
      await Bun.sleep(LOOK_MS)
      error = takeError(fd)
    }
    return error === 0 ? null : systemErrorCode(error)
  } finally {
    closeSync(fd)
  }
}

function explain(code: string | null, place: string): ConnectFailure {
  if (code === 'ECONNREFUSED') {
    const remedy = 'Start a service there, or use another port.'
    return { status: 502, sentences: `${place} refuses the connection: nothing listens there. ${remedy}` }
  }
  if (code === 'ENETUNREACH') {
    const remedy = "Check this machine's network, or use an address to which it has a route."
    return { status: 502, sentences: `This machine has no route to ${place}. ${remedy}` }
  }
  if (code === 'EHOSTUNREACH') {
    const remedy = 'Check the address, and that its host is on.'
    return {
      status: 502,
      sentences: `No host responds at ${place}, or a router refuses the connection. ${remedy}`,
    }
  }
  if (code === 'EACCES' || code === 'EPERM') {
    const remedy = 'Allow it in its firewall (nft list ruleset, ip route).'
    return { status: 502, sentences: `This machine forbids connections to ${place} (${code}). ${remedy}` }
  }
  if (code === 'ETIMEDOUT') {
    const remedy = 'Check the address, that its host is on, and the firewalls on the way.'
    return { status: 504, sentences: `${place} does not respond: the connection timed out. ${remedy}` }
  }
  const cause = code === null ? '' : ` (${code})`
  const remedy = 'Check the address, and that a service listens there.'
  return { status: 502, sentences: `The connection to ${place} failed${cause}. ${remedy}` }
}
