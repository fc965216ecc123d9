import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cluster } from '../support/kubernetes/cluster.ts'
import { testCache } from '../support/kubernetes/executable.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'
import { processesOf, until } from '../support/processes.ts'
import { EXECUTABLE, lacksCluster } from './kubernetes-servers.ts'

/** What a cluster could change or leave on this machine, beyond its own processes. */
const machine = (): unknown => ({
  settings: ['vm/overcommit_memory', 'kernel/panic', 'kernel/panic_on_oops'].map((name) =>
    readFileSync(`/proc/sys/${name}`, 'utf8'),
  ),
  links: readdirSync('/sys/class/net').sort(),
  groups: readdirSync('/sys/fs/cgroup', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.includes('cluster-'),
  ),
  directories: ['/var/lib/kubelet', '/var/log/pods', '/var/log/containers'].filter(existsSync),
  files: readdirSync(testCache()).filter((name) => name.startsWith('cluster-')),
})

test.skipIf(lacksCluster('the cluster'))(
  'a cluster of two nodes runs a restricted pod on a claim, and leaves nothing on the machine',
  async () => {
    // The remains of earlier ones are removed by the next one.
    const cluster = await Cluster.start({ nodes: 2, executable: EXECUTABLE })
    try {
      await cluster.makeNamespace('servers')
      const objects = '/api/v1/namespaces/servers'
      await cluster.client.request('POST', `${objects}/persistentvolumeclaims`, {
        metadata: { name: 'files' },
        spec: { accessModes: ['ReadWriteOncePod'], resources: { requests: { storage: '1Gi' } } },
      })
      await cluster.client.request('POST', `${objects}/pods`, {
        metadata: { name: 'server' },
        spec: {
          restartPolicy: 'Never',
          securityContext: {
            ...{ runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
          },
          containers: [
            {
              ...{ name: 'server', image: SERVER_IMAGE, imagePullPolicy: 'Never' },
              command: ['sh', '-c', 'echo written >/workspace/file && sleep 600'],
              securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
              volumeMounts: [{ name: 'files', mountPath: '/workspace' }],
            },
          ],
          volumes: [{ name: 'files', persistentVolumeClaim: { claimName: 'files' } }],
        },
      })
      const read = (): Promise<string> =>
        cluster.kubectl('-n', 'servers', 'exec', 'server', '--', 'cat', '/workspace/file')
      await until(async () => (await read().catch(() => '')) === 'written\n', 'the file of a pod', 60_000)
    } finally {
      await cluster[Symbol.asyncDispose]()
    }
    expect(machine()).toMatchObject({ groups: [], directories: [], files: [] })
    expect(processesOf(join(testCache(), 'cluster-'))).toEqual([])
  },
  120_000,
)
