import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NETWORK_PLUGINS } from './executable.ts'
import { PAUSE_IMAGE } from './image.ts'
import type { Place } from './place.ts'

/** Writes the files by which the containerd and the kubelet of a node are configured. */
export function writeNodeFiles(
  place: Place,
  n: number,
  certificate: (file: string) => string,
  noticesLossSoon: boolean,
): void {
  const files = join(place.directory, `node${n}`)
  for (const name of ['containerd', 'state', 'kubelet', 'network', 'volumes', 'logs'])
    mkdirSync(join(files, name))
  const cri = 'plugins."io.containerd.grpc.v1.cri"'
  writeFileSync(
    join(files, 'containerd.toml'),
    `version = 2
root = "${files}/containerd"
state = "${files}/state"
[grpc]
  address = "${files}/state/containerd.sock"
[${cri}]
  sandbox_image = "${PAUSE_IMAGE}"
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  # Root in a container of CI may lack CAP_SYS_RESOURCE, with which alone the score could be lowered.
  restrict_oom_score_adj = true
  [${cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [${cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [${cri}.cni]
    bin_dir = "${NETWORK_PLUGINS}"
    conf_dir = "${files}/network"
`,
  )
  const ranges = [[{ subnet: `${place.network}.${n}.0/24` }]]
  const ipam = {
    type: 'host-local',
    dataDir: join(files, 'addresses'),
    ranges,
    routes: [{ dst: '0.0.0.0/0' }],
  }
  const bridge = { type: 'bridge', bridge: 'pods', isGateway: true, ipMasq: false, hairpinMode: true, ipam }
  writeFileSync(
    join(files, 'network/tests.conflist'),
    JSON.stringify({ cniVersion: '0.4.0', name: `tests${n}`, plugins: [bridge] }),
  )
  // Names are not looked up in the cluster, and at once fail to be.
  writeFileSync(join(files, 'resolv.conf'), 'nameserver 127.0.0.1\n')
  writeFileSync(
    join(files, 'kubelet.json'),
    JSON.stringify({
      ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' },
      address: `${place.network}.0.1${n}`,
      authentication: {
        ...{ anonymous: { enabled: false }, webhook: { enabled: true } },
        x509: { clientCAFile: certificate('ca.crt') },
      },
      authorization: { mode: 'Webhook' },
      containerRuntimeEndpoint: `unix://${files}/state/containerd.sock`,
      ...{ cgroupDriver: 'cgroupfs', cgroupRoot: `/${place.group(n)}`, enforceNodeAllocatable: ['pods'] },
      failCgroupV1: false,
      tlsCertFile: certificate(`node${n}.crt`),
      tlsPrivateKeyFile: certificate(`node${n}.key`),
      ...{ podLogsDir: join(files, 'logs'), resolvConf: join(files, 'resolv.conf') },
      ...{ healthzPort: 0, readOnlyPort: 0, clusterDomain: 'cluster.local', clusterDNS: ['127.0.0.1'] },
      evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
      ...{ imageGCHighThresholdPercent: 100, imageGCLowThresholdPercent: 99 },
      ...(noticesLossSoon ? { nodeStatusUpdateFrequency: '1s', nodeLeaseDurationSeconds: 4 } : {}),
    }),
  )
}
