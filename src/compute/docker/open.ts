import { StartupError } from '../../errors.ts'
import { homeDirectory } from '../../runtime/home-directory.ts'
import { EngineDriver } from '../engine/engine-driver.ts'
import type { OpenedEngine, OpenOptions } from '../engine/open.ts'
import { describeAddress, findEngine, tlsFor } from './address.ts'
import { DockerClient } from './client.ts'
import { DockerEngine } from './docker-engine.ts'
import { ownImage } from './server-images.ts'

/**
 * Finds the Docker engine that a person means, and makes the driver of servers on it. Connects to nothing.
 *
 * @throws StartupError for an address that cannot be used
 */
export function openDocker(options: OpenOptions): OpenedEngine {
  const { config, variables = {}, version } = options
  const { engine: settings } = config
  const found = findEngine({
    configured: settings.address,
    tlsDirectory: settings.tlsDirectory,
    variables,
    home: homeDirectory() ?? '/',
    uid: process.getuid?.() ?? null,
  })
  const { address } = found
  if (address.kind === 'ssh') {
    throw new StartupError(
      `berth does not open ${describeAddress(address)} by itself yet. Forward its socket ("ssh -nNT -L /tmp/engine.sock:${address.socket} ${address.host}") and start berth with --engine unix:///tmp/engine.sock.`,
    )
  }
  const name = `The engine at ${describeAddress(address)}`
  const isLocal = address.kind === 'unix'
  const engine = new DockerEngine({
    client: new DockerClient(address, name, tlsFor(found, settings.insecure)),
    name,
    isLocal,
    version,
    network: settings.network,
    runtime: settings.runtime,
    pulls: config.pull === 'missing',
    logger: options.logger,
  })
  const image = config.serverImage ?? ownImage(version)
  return {
    driver: new EngineDriver({ ...options, engine, name, image, leaseMs: config.serverLeaseMs }),
    isLocal,
    hasImage: () => engine.hasImage(image),
  }
}
