import { expect, test } from 'bun:test'
import { parseAllDocuments } from 'yaml'
import { clusterManifest } from '../../src/cli/kubernetes-manifest.ts'
import { EXECUTABLE_PATH } from '../../src/compute/engine/engine.ts'
import { Cluster } from '../support/kubernetes/cluster.ts'
import { PLAIN_IMAGE, SERVER_IMAGE } from '../support/kubernetes/image.ts'
import { until } from '../support/processes.ts'
import { EXECUTABLE, lacksCluster } from './kubernetes-servers.ts'

/** Paths of the kinds in the manifest, of those in a namespace from that on. */
const PATHS: Readonly<Record<string, string>> = {
  Namespace: '/api/v1/namespaces',
  ServiceAccount: '/api/v1/NS/serviceaccounts',
  Role: '/apis/rbac.authorization.k8s.io/v1/NS/roles',
  RoleBinding: '/apis/rbac.authorization.k8s.io/v1/NS/rolebindings',
  NetworkPolicy: '/apis/networking.k8s.io/v1/NS/networkpolicies',
  ResourceQuota: '/api/v1/NS/resourcequotas',
  PersistentVolumeClaim: '/api/v1/NS/persistentvolumeclaims',
  Deployment: '/apis/apps/v1/NS/deployments',
  Service: '/api/v1/NS/services',
}

interface PodList {
  items: { metadata: { name: string }; status: { podIP?: string } }[]
}

test.skipIf(lacksCluster('berth in a cluster'))(
  'the printed manifest runs berth in a cluster, with its servers in a namespace of their own',
  async () => {
    await using cluster = await Cluster.start({ nodes: 1, executable: EXECUTABLE })
    const { client } = cluster
    const options = { image: SERVER_IMAGE, serverImage: SERVER_IMAGE, namespace: 'berth', servers: 'servers' }
    const apiServer = new URL(client.server)
    for (const document of parseAllDocuments(clusterManifest(options))) {
      const object = document.toJS()
      if (object.kind === 'Namespace') {
        await client.request('POST', '/api/v1/namespaces', object)
        continue
      }
      if (object.kind === 'Deployment') {
        await client.request('POST', '/api/v1/namespaces/berth/secrets', {
          metadata: { name: 'berth' },
          stringData: { 'master-key': Buffer.alloc(32, 7).toString('base64') },
        })
        const [container] = object.spec.template.spec.containers
        // The image here is that of servers, and nothing in this cluster forwards the addresses of Services.
        Object.assign(container, { command: [EXECUTABLE_PATH, 'serve'], imagePullPolicy: 'Never' })
        const more = {
          ...{ BERTH_HOST: '0.0.0.0', BERTH_API_KEY: 'sk_live_inside_cluster', HOME: '/home/berth' },
          ...{ BERTH_SERVER_IMAGES: PLAIN_IMAGE, BERTH_OUTBOUND_HOSTS: apiServer.host },
          ...{ KUBERNETES_SERVICE_HOST: apiServer.hostname, KUBERNETES_SERVICE_PORT: apiServer.port },
        }
        container.env.push(...Object.entries(more).map(([name, value]) => ({ name, value })))
      }
      const path = PATHS[object.kind]?.replace('NS', `namespaces/${object.metadata.namespace}`) ?? ''
      await client.request('POST', path, object)
    }
    const pods = async (namespace: string): Promise<PodList['items']> =>
      (await client.request<PodList>('GET', `/api/v1/namespaces/${namespace}/pods`)).items
    const call = async (path: string, body: object): Promise<Record<string, unknown>> => {
      const [pod] = await pods('berth')
      const response = await fetch(`http://${pod?.status.podIP}:4747${path}`, {
        method: 'POST',
        headers: {
          Host: '127.0.0.1',
          Authorization: 'Bearer sk_live_inside_cluster',
          'Content-Type': 'application/json',
        },
        body: JSON.stringify(body),
      })
      return (await response.json()) as Record<string, unknown>
    }
    let id: unknown
    const isCreated = async (): Promise<boolean> => {
      id = (await call('/servers', {}).catch(() => null))?.id
      return typeof id === 'string'
    }
    await until(isCreated, 'a server', 90_000)
    const result = await call(`/servers/${id}/exec`, { command: 'id -un; ls /var/run/secrets' })
    expect(result).toMatchObject({ stdout: 'berth\n', exitCode: 2 })
    // What the policies of a cluster deny servers, they reach through berth by its rules.
    const look = (at: string) => `bun -e 'console.log(await (await fetch("http://${at}/")).text())'`
    const commands = [look(apiServer.host), look('10.9.9.9')]
    expect(await call(`/servers/${id}/exec`, { command: commands.join('; ') })).toMatchObject({
      stdout: expect.stringMatching(/HTTP request to an HTTPS server[\s\S]*berth refuses this connection/),
    })
    // The executable comes from the image named for servers: a registry has no other.
    const { id: plain } = await call(`/servers?image=${PLAIN_IMAGE}`, {})
    expect(await call(`/servers/${plain}/exec`, { command: 'echo here' })).toMatchObject({ stdout: 'here\n' })
    expect((await pods('servers')).length).toBeGreaterThan(0)
    expect((await pods('berth')).length).toBe(1)
  },
  180_000,
)
