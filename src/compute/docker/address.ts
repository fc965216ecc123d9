import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { StartupError } from '../../errors.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { fieldsOf, fieldsOfJson } from '../../runtime/is-object.ts'

/** Where an engine accepts connections. */
export type Endpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }

/** An engine's socket on a machine that ssh leads to. */
export interface SshAddress {
  readonly kind: 'ssh'
  /** Null for the one of the person's configuration, as the port. */
  readonly user: string | null
  readonly host: string
  readonly port: number | null
  /** Absolute path of the socket there. */
  readonly socket: string
}

/** How an engine is reached: directly, or by a tunnel of ssh. */
export type EngineAddress = Endpoint | SshAddress

/** What a connection with TLS needs, as PEM. */
export interface EngineTls {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** An engine that was found. */
export interface FoundEngine {
  readonly address: EngineAddress
  /** What named it, for messages, such as `DOCKER_HOST`. */
  readonly source: string
  /** Absolute path of the directory with its certificates; null for none. */
  readonly tlsDirectory: string | null
}

/** What says where an engine is. */
interface AddressSources {
  /** The value of `--engine`; null if it is not set. */
  readonly configured: string | null
  readonly tlsDirectory: string | null
  /** The environment of berth. */
  readonly variables: Readonly<Record<string, string | undefined>>
  /** Absolute path of the person's home directory. */
  readonly home: string
  /** Numeric id of the user of berth; null if the system has none. */
  readonly uid: number | null
}

/** The port of an engine without TLS, and of one with TLS. */
const PLAIN_PORT = 2375
const TLS_PORT = 2376

/** The socket of an engine on a machine that ssh leads to. */
const REMOTE_SOCKET = '/var/run/docker.sock'

/**
 * Returns the engine that a person has named: `--engine`, `DOCKER_HOST`, the current context of the docker command; without
 * those, the first socket of this machine that exists. Throws `StartupError` if the address is none or there is none.
 */
export function findEngine(sources: AddressSources): FoundEngine {
  const { configured, tlsDirectory, variables } = sources
  const directory = tlsDirectory ?? variables.DOCKER_CERT_PATH ?? null
  if (configured !== null)
    return { address: parseEngineAddress(configured), source: '--engine', tlsDirectory: directory }
  const host = variables.DOCKER_HOST
  if (host) return { address: parseEngineAddress(host), source: 'DOCKER_HOST', tlsDirectory: directory }
  const context = currentContext(sources)
  if (context !== null) return context
  const path = localSockets(sources).find(existsSync) ?? '/var/run/docker.sock'
  return { address: { kind: 'unix', path }, source: 'the usual place', tlsDirectory: null }
}

/** Returns the absolute paths of the sockets at which engines of this machine usually are, the likeliest first. */
export function localSockets({
  variables,
  home,
  uid,
}: Pick<AddressSources, 'variables' | 'home' | 'uid'>): string[] {
  const runtime = variables.XDG_RUNTIME_DIR ?? (uid === null ? null : `/run/user/${uid}`)
  return [
    join(home, '.docker/run/docker.sock'),
    join(home, '.orbstack/run/docker.sock'),
    ...(runtime === null ? [] : [join(runtime, 'docker.sock')]),
    '/var/run/docker.sock',
    ...(runtime === null ? [] : [join(runtime, 'podman/podman.sock')]),
    '/run/podman/podman.sock',
    join(home, '.local/share/containers/podman/machine/podman.sock'),
    join(home, '.colima/default/docker.sock'),
  ]
}

/** Reads an engine's address. Throws `StartupError`, whose message shows no password. */
export function parseEngineAddress(text: string): EngineAddress {
  const scheme = /^([a-z]+):\/\//.exec(text)?.[1]
  if (scheme === 'unix' && text.startsWith('unix:///'))
    return { kind: 'unix', path: text.slice('unix://'.length) }
  const url = scheme === undefined || !URL.canParse(text) ? null : new URL(text)
  if (url !== null && url.password !== '')
    throw new StartupError(
      "The engine's address has a password in it, which other users of this machine could see. Use a key of ssh, or certificates with --engine-tls.",
    )
  const host = url?.hostname.replace(/^\[(.*)\]$/, '$1') ?? ''
  if (url !== null && host !== '') {
    const port = url.port === '' ? null : Number(url.port)
    if (scheme === 'tcp' && url.username === '' && (url.pathname === '' || url.pathname === '/'))
      return { kind: 'tcp', host, port: port ?? PLAIN_PORT }
    if (scheme === 'ssh') {
      const socket = url.pathname.length > 1 ? url.pathname : REMOTE_SOCKET
      return { kind: 'ssh', user: url.username || null, host, port, socket }
    }
  }
  throw new StartupError(
    `The engine's address is not one: ${text.replace(/\/\/[^/@]*@/, '//***@')}. Use unix:///PATH, tcp://HOST:PORT or ssh://[USER@]HOST[:PORT].`,
  )
}

/** Returns an address as a person writes it. */
export function describeAddress(address: EngineAddress): string {
  if (address.kind === 'unix') return `unix://${address.path}`
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  if (address.kind === 'tcp') return `tcp://${host}:${address.port}`
  const user = address.user === null ? '' : `${address.user}@`
  const socket = address.socket === REMOTE_SOCKET ? '' : address.socket
  return `ssh://${user}${host}${address.port === null ? '' : `:${address.port}`}${socket}`
}

/**
 * Reads the certificates for an address, if it needs any. Throws `StartupError` if they cannot be read, or if the address
 * leads off this machine without them, unless a person has allowed that.
 */
export function tlsFor({ address, tlsDirectory }: FoundEngine, allowsPlain: boolean): EngineTls | null {
  if (address.kind !== 'tcp') return null
  if (tlsDirectory !== null) {
    const read = (name: string): string => {
      try {
        return readFileSync(join(tlsDirectory, name), 'utf8')
      } catch (error) {
        throw new StartupError(
          `The certificates of the engine cannot be read: ${join(tlsDirectory, name)}. The directory of --engine-tls needs ca.pem, cert.pem and key.pem.`,
          { cause: error },
        )
      }
    }
    return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') }
  }
  if (allowsPlain || isLoopback(address.host)) return null
  throw new StartupError(
    `The engine at ${describeAddress(address)} would be controlled without encryption, and everyone who reaches it is root on its machine. Use ssh://HOST, or tcp://HOST:${TLS_PORT} with --engine-tls. --engine-insecure permits it all the same.`,
  )
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

/** Returns the engine of the docker command's current context (docs.docker.com/engine/manage-resources/contexts); null for the default one. */
function currentContext({ variables, home }: AddressSources): FoundEngine | null {
  const directory = variables.DOCKER_CONFIG ?? join(home, '.docker')
  // What is not JSON, the docker command reports.
  const readJson = (path: string): Record<string, unknown> =>
    fieldsOfJson(ifPresent(() => readFileSync(path, 'utf8')) ?? '')
  const name = variables.DOCKER_CONTEXT ?? readJson(join(directory, 'config.json')).currentContext
  if (typeof name !== 'string' || name === '' || name === 'default') return null
  const hash = new Bun.CryptoHasher('sha256').update(name).digest('hex')
  const { Endpoints } = readJson(join(directory, 'contexts/meta', hash, 'meta.json'))
  const { Host } = fieldsOf(fieldsOf(Endpoints).docker)
  if (typeof Host !== 'string')
    throw new StartupError(
      `The docker command's context "${name}" has no address. Choose another with "docker context use", or name the engine with --engine.`,
    )
  const tls = join(directory, 'contexts/tls', hash, 'docker')
  return {
    address: parseEngineAddress(Host),
    source: `the context ${name}`,
    tlsDirectory: existsSync(tls) ? tls : null,
  }
}
