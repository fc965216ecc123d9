/** What runs berth itself in a Kubernetes cluster, as objects for `kubectl apply`. */
import { stringify } from 'yaml'
import { CLUSTER_RIGHTS } from '../compute/compute.ts'

/** Where berth and its servers are to run. */
export interface ManifestOptions {
  /** The image of berth itself. */
  readonly image: string
  /** The image of servers. */
  readonly serverImage: string
  /** The namespace of berth, with its database and its keys. */
  readonly namespace: string
  /** The namespace of the servers. */
  readonly servers: string
}

/** Name of what belongs to berth in its namespace. */
const NAME = 'berth'

const PORT = 4747

/**
 * Returns what runs berth in a cluster, as YAML for `kubectl apply`: two namespaces, so that no server is beside the database
 * and the keys, and the rights that berth needs in the second alone.
 */
export function clusterManifest({ image, serverImage, namespace, servers }: ManifestOptions): string {
  const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  const labels = { 'app.kubernetes.io/name': NAME }
  const inBerth = { name: NAME, namespace, labels }
  const inServers = { name: NAME, namespace: servers, labels }
  const settings = {
    BERTH_COMPUTE: 'kubernetes',
    // The image of berth asks for an isolation of its own machine otherwise.
    BERTH_ISOLATION: 'auto',
    BERTH_KUBERNETES_NAMESPACE: servers,
    BERTH_KUBERNETES_NETWORK: 'none',
    // The root of a volume belongs to root; berth's directory is its own.
    BERTH_DATA: '/data/berth',
    BERTH_SERVER_IMAGE: serverImage,
    BERTH_PULL: 'missing',
    BERTH_PUBLIC_HOST: `${NAME}.${namespace}`,
  }
  const berth = {
    name: NAME,
    image,
    ports: [{ containerPort: PORT }],
    env: [
      ...Object.entries(settings).map(([name, value]) => ({ name, value })),
      // Made by hand, so that it is in no file: see the guide of berth.
      { name: 'BERTH_MASTER_KEY', valueFrom: { secretKeyRef: { name: NAME, key: 'master-key' } } },
    ],
    readinessProbe: { tcpSocket: { port: PORT } },
    resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { cpu: '2', memory: '1Gi' } },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    volumeMounts: [
      { name: 'data', mountPath: '/data' },
      { name: 'home', mountPath: '/home/berth' },
    ],
  }
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: restricted } },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: servers, labels: restricted } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: inBerth },
    {
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: inServers },
      rules: Object.entries(CLUSTER_RIGHTS).map(([resource, verbs]) => ({
        ...{ apiGroups: [''], resources: [resource], verbs },
      })),
    },
    {
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: inServers },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: NAME },
      subjects: [{ kind: 'ServiceAccount', name: NAME, namespace }],
    },
    {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: inServers },
      // Servers are reached through exec, and reach what berth lets them, where the cluster enforces policies.
      spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
    },
    {
      ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: inServers },
      spec: { hard: { pods: '50', 'limits.memory': '100Gi', 'requests.storage': '1Ti' } },
    },
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: inBerth },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '20Gi' } } },
    },
    {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: inBerth },
      spec: {
        // Two of them would write to one database.
        ...{ replicas: 1, strategy: { type: 'Recreate' }, selector: { matchLabels: labels } },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: NAME,
            // The cluster would set BERTH_PORT, to the address of the Service.
            enableServiceLinks: false,
            securityContext: {
              ...{ runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 },
              seccompProfile: { type: 'RuntimeDefault' },
            },
            containers: [berth],
            volumes: [
              { name: 'data', persistentVolumeClaim: { claimName: NAME } },
              { name: 'home', emptyDir: {} },
            ],
          },
        },
      },
    },
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: inBerth },
      spec: { selector: labels, ports: [{ port: PORT, targetPort: PORT }] },
    },
  ]
  return objects.map((object) => stringify(object, { aliasDuplicateObjects: false })).join('---\n')
}
