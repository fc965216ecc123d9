import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { EngineConfig } from '../../config/compute.ts'
import { StartupError } from '../../errors.ts'
import { homeDirectory } from '../../runtime/home-directory.ts'
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
  /** Absolute path of the directory with its certificates; null for none. */
  readonly tlsDirectory: string | null
}

/** Environment variables. */
type Variables = Readonly<Record<string, string | undefined>>

/** The usual port of an engine without TLS. */
const PLAIN_PORT = 2375

/** The usual socket of an engine, here and on a machine that ssh leads to. */
const DOCKER_SOCKET = '/var/run/docker.sock'

/**
 * Returns the engine that a person has named: `--engine`, `DOCKER_HOST`, the current context of the docker command; without
 * those, the first socket of this machine that exists. Throws `StartupError` for an address that is none.
 *
 * @param variables the environment of berth
 */
export function findEngine(
  { address, tlsDirectory }: Pick<EngineConfig, 'address' | 'tlsDirectory'>,
  variables: Variables,
): FoundEngine {
  const home = homeDirectory() ?? '/'
  const named = address ?? variables.DOCKER_HOST
  if (named)
    return {
      address: parseEngineAddress(named),
      tlsDirectory: tlsDirectory ?? variables.DOCKER_CERT_PATH ?? null,
    }
  const context = currentContext(variables, home)
  if (context !== null) return context
  const path = localSockets(variables, home).find(existsSync) ?? DOCKER_SOCKET
  return { address: { kind: 'unix', path }, tlsDirectory: null }
}

/** Returns the absolute paths of the sockets at which engines of this machine usually are, the likeliest first. */
function localSockets(variables: Variables, home: string): string[] {
  const runtime = variables.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.()}`
  return [
    join(home, '.docker/run/docker.sock'),
    join(home, '.orbstack/run/docker.sock'),
    join(runtime, 'docker.sock'),
    DOCKER_SOCKET,
    join(runtime, 'podman/podman.sock'),
    '/run/podman/podman.sock',
    join(home, '.local/share/containers/podman/machine/podman.sock'),
    join(home, '.colima/default/docker.sock'),
  ]
}

/** Reads an engine's address. Throws `StartupError`, whose message shows no password. */
function parseEngineAddress(text: string): EngineAddress {
  if (text.startsWith('unix:///')) return { kind: 'unix', path: text.slice('unix://'.length) }
  const { protocol, username, password, hostname, port, pathname } = URL.parse(text) ?? {}
  if (password)
    throw new StartupError(
      "The engine's address has a password in it, which other users of this machine could see. Use a key of ssh, or certificates with --engine-tls.",
    )
  const host = hostname?.replace(/^\[(.*)\]$/, '$1')
  if (host && protocol === 'tcp:' && username === '' && (pathname === '' || pathname === '/'))
    return { kind: 'tcp', host, port: Number(port || PLAIN_PORT) }
  if (host && protocol === 'ssh:')
    return {
      ...{ kind: 'ssh', host, user: username || null, port: port ? Number(port) : null },
      socket: pathname && pathname !== '/' ? pathname : DOCKER_SOCKET,
    }
  throw new StartupError(
    `The engine's address is not one: ${text.replace(/\/\/[^/@]*@/, '//***@')}. Use unix:///PATH, tcp://HOST:PORT or ssh://[USER@]HOST[:PORT].`,
  )
}

/** Returns an address as a person writes it. */
export function describeAddress(address: EngineAddress): string {
  if (address.kind === 'unix') return `unix://${address.path}`
  if (address.kind === 'tcp') return `tcp://${authorityOf(address)}`
  const user = address.user === null ? '' : `${address.user}@`
  const socket = address.socket === DOCKER_SOCKET ? '' : address.socket
  return `ssh://${user}${authorityOf(address)}${socket}`
}

/** Returns a host with its port as URLs have them. */
export const authorityOf = ({ host, port }: { host: string; port: number | null }): string =>
  `${host.includes(':') ? `[${host}]` : host}${port === null ? '' : `:${port}`}`

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
    `The engine at ${describeAddress(address)} would be controlled without encryption, and everyone who reaches it is root on its machine. Use ssh://HOST, or tcp://HOST:2376 with --engine-tls. --engine-insecure permits it all the same.`,
  )
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))

/** Returns the engine of the docker command's current context (docs.docker.com/engine/manage-resources/contexts); null for the default one. */
function currentContext(variables: Variables, home: string): FoundEngine | null {
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
  return { address: parseEngineAddress(Host), tlsDirectory: existsSync(tls) ? tls : null }
}
