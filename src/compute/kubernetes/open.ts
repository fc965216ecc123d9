import { StartupError } from '../../errors.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { isOwnImage, ownImage } from '../engine/names.ts'
import type { OpenOptions, ReachableEngine } from '../engine/open.ts'
import { readAccess } from './kubeconfig.ts'
import { KubernetesEngine } from './kubernetes-engine.ts'

/**
 * Reads how to call the cluster that a person means. Connects to nothing.
 *
 * @throws StartupError for a kubeconfig that cannot be used
 */
export async function openKubernetes({
  config,
  variables = {},
  version,
}: OpenOptions): Promise<ReachableEngine> {
  const access = await readAccess(config.kubernetes, variables).catch((error: unknown) => {
    throw new StartupError(messageOf(error), { cause: error })
  })
  const { serverImage } = config
  const engine = new KubernetesEngine({
    access,
    config: config.kubernetes,
    pulls: config.pull === 'missing',
    // Nodes have it from the registry that was named.
    toolsImage: serverImage !== null && isOwnImage(serverImage) ? serverImage : ownImage(version),
  })
  return {
    ...{ engine, name: `Kubernetes at ${access.server}`, isLocal: false },
    examine: async (driver, onStep) => {
      const { tryCluster } = await import('./trial.ts')
      return tryCluster(engine, driver, onStep)
    },
  }
}
