import { StartupError } from '../../errors.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { ownImage } from '../docker/server-images.ts'
import { EngineDriver } from '../engine/engine-driver.ts'
import type { OpenedEngine, OpenOptions } from '../engine/open.ts'
import { readAccess } from './kubeconfig.ts'
import { KubernetesEngine } from './kubernetes-engine.ts'

/**
 * Reads how to call the cluster that a person means, and makes the driver of servers in it. Connects to nothing.
 *
 * @throws StartupError for a kubeconfig that cannot be used
 */
export async function openKubernetes(options: OpenOptions): Promise<OpenedEngine> {
  const { config, variables = {}, version } = options
  const { kubernetes, serverImage, serverLeaseMs, pull } = config
  const access = await readAccess(kubernetes, variables).catch((error: unknown) => {
    throw new StartupError(messageOf(error), { cause: error })
  })
  const image = serverImage ?? ownImage(version)
  const engine = new KubernetesEngine({
    access,
    config: kubernetes,
    pulls: pull === 'missing',
    toolsImage: ownImage(version),
  })
  const name = `Kubernetes at ${access.server}`
  return {
    driver: new EngineDriver({ ...options, engine, name, image, leaseMs: serverLeaseMs }),
    engine,
    isLocal: false,
    // Nodes alone know their images: a start says which is missing.
    hasImage: async () => true,
  }
}
