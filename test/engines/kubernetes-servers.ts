import { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import { readAccess } from '../../src/compute/kubernetes/kubeconfig.ts'
import { KubernetesEngine } from '../../src/compute/kubernetes/kubernetes-engine.ts'
import type { KubernetesConfig } from '../../src/config/compute.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'

/** The namespace of servers in clusters of tests. */
export const NAMESPACE = 'servers'

/** An engine on the cluster of a kubeconfig. */
export async function engineOn(
  kubeconfig: string,
  config: Partial<KubernetesConfig> = {},
  { pulls } = { pulls: false },
): Promise<KubernetesEngine> {
  const none = { context: null, storageClass: null, runtimeClass: null, nodeSelector: {} }
  return new KubernetesEngine({
    access: await readAccess({ kubeconfig: [kubeconfig], context: null }, {}),
    config: { ...none, kubeconfig: [kubeconfig], namespace: NAMESPACE, ...config },
    pulls,
    toolsImage: SERVER_IMAGE,
  })
}

/** A driver of a data directory on an engine. */
export const driverOfEngine = (
  engine: KubernetesEngine,
  dataDir: string,
  image: string = SERVER_IMAGE,
): EngineDriver =>
  new EngineDriver({
    ...{ engine, dataDir, ephemeral: true, image, leaseMs: null },
    name: 'the cluster of the tests',
    logger: createLogger('error', (line) => process.stderr.write(line), Date.now),
    baseUrl: () => null,
    environment: () => ({}),
    prepareCaches: async () => {},
    provide() {},
  })
