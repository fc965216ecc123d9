import { join } from 'node:path'
import { digestOf } from '../engine/names.ts'
import type { EngineChoice, OpenOptions, ReachableEngine } from '../engine/open.ts'
import { describeAddress, findEngine, tlsFor } from './address.ts'
import { DockerClient } from './client.ts'
import { DockerEngine } from './docker-engine.ts'
import { SshTunnel } from './ssh-tunnel.ts'

/** A Docker engine to which nothing was sent yet. */
interface FoundClient extends Pick<ReachableEngine, 'name' | 'isLocal'> {
  readonly client: DockerClient
}

/** Finds the Docker engine that a person means. Connects to nothing. Throws `StartupError` for an address that cannot be used. */
export function findClient({
  config: { engine: settings },
  variables,
  directory,
}: Omit<EngineChoice, 'version'>): FoundClient {
  const found = findEngine(settings, variables)
  const { address } = found
  const name = `The engine at ${describeAddress(address)}`
  if (address.kind === 'ssh') {
    const path = join(directory, `ssh-${digestOf(name, 8)}.sock`)
    const tunnel = new SshTunnel(address, path)
    const client = new DockerClient({ kind: 'unix', path }, name, null, () => tunnel.open())
    return { client, name, isLocal: false }
  }
  const client = new DockerClient(address, name, tlsFor(found, settings.insecure))
  return { client, name, isLocal: address.kind === 'unix' }
}

/**
 * Opens the Docker engine that a person means for servers. Connects to nothing.
 *
 * @throws StartupError for an address that cannot be used
 */
export function openDocker(options: OpenOptions): ReachableEngine {
  const { config, variables = {}, version, dataDir, logger } = options
  const { client, name, isLocal } = findClient({ config, variables, directory: join(dataDir, 'engine') })
  const engine = new DockerEngine({
    ...{ client, name, isLocal, version, logger },
    network: config.engine.network,
    runtime: config.engine.runtime,
    pulls: config.pull === 'missing',
  })
  return { engine, name, isLocal }
}
