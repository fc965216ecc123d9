import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Pod } from '../../src/compute/kubernetes/pod.ts'
import type { KeyedInfo } from '../support/berth.ts'
import { Cluster } from '../support/kubernetes/cluster.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'
import { until } from '../support/processes.ts'
import { call, cleanEnvironment, command, type ServeProcess, serve } from '../support/serve.ts'
import { EXECUTABLE, lacksCluster, NAMESPACE } from './kubernetes-servers.ts'

const MAKE = 'mkdir -p "e d" d; echo one >"a b"; chmod 750 "a b"; ln "a b" h; ln -s "../a b" d/l; echo ü >ñ'
const LOOK =
  'find . -path ./ticks -o -type f -printf "%P %m %n\\n" | LC_ALL=C sort; cat "a b" d/l ñ; find . -type l -printf "%P %l\\n"; ls -d "e d"'

const TITLE = 'servers that are carried to and from a cluster'

describe.skipIf(lacksCluster(TITLE))(TITLE, () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-moves-'))
  const dataDir = join(directory, 'data')
  let cluster: Cluster
  let running: ServeProcess | null = null

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 2, executable: EXECUTABLE, noticesLossSoon: true })
    await cluster.makeNamespace(NAMESPACE)
  }, 120_000)
  afterAll(async () => {
    await end()
    await cluster?.[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  }, 60_000)

  async function instance(compute: 'kubernetes' | 'local'): Promise<KeyedInfo> {
    await end()
    running = serve([
      ...['--port', '0', '--data', dataDir, '--compute', compute, '--kubeconfig', cluster.kubeconfig],
      ...['--kubernetes-namespace', NAMESPACE, '--server-image', SERVER_IMAGE, '--server-lease', '15s'],
    ])
    return await running.ready
  }

  async function end(): Promise<void> {
    running?.child.kill('SIGTERM')
    await running?.child.exited
    running = null
  }

  /** Runs `berth servers …` and returns its exit status and what it says. */
  async function servers(...args: string[]): Promise<[status: number, said: string]> {
    const child = Bun.spawn([...command, 'servers', ...args, '--data', dataDir], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: cleanEnvironment(),
    })
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
    return [await child.exited, output + errors]
  }

  const exec = async (info: KeyedInfo, id: string, command: string): Promise<string> =>
    (await call(info, 'POST', `/servers/${id}/exec`, { command })).body.stdout
  const listed = async <T>(kind: string, id?: string): Promise<T[]> => {
    const selected = id === undefined ? '' : `?labelSelector=${encodeURIComponent(`berth.dev/server=${id}`)}`
    const path = `/api/v1/namespaces/${NAMESPACE}/${kind}${selected}`
    return (await cluster.client.request<{ items: T[] }>('GET', path)).items
  }
  const pods = (id: string): Promise<Pod[]> => listed<Pod>('pods', id)
  const podsOn = async (id: string, phase: string): Promise<(string | undefined)[]> =>
    (await pods(id)).filter(({ status }) => status.phase === phase).map(({ spec }) => spec.nodeName)

  test('a server has the same files in a cluster, in its export, in the import of that, and back here', async () => {
    const here = await instance('local')
    const id = (await call(here, 'POST', '/servers')).body.id
    await exec(here, id, `${MAKE}; head -c 20000000 /dev/urandom >big`)
    const look = `${LOOK}; sha256sum big`
    const files = await exec(here, id, look)
    const there = await instance('kubernetes')
    expect(await servers('move', id, '--to', 'kubernetes')).toEqual([
      0,
      expect.stringContaining('compared by hash'),
    ])
    expect(existsSync(join(dataDir, 'servers', id))).toBe(false)
    expect(await exec(there, id, look)).toBe(files)
    const archive = join(directory, 'server.tar')
    expect(await servers('export', id, archive)).toMatchObject([0, expect.stringContaining('Exported')])
    const [, said] = await servers('import', archive, '--quiet')
    const other = said.trim().split('\n').at(-1) ?? ''
    expect(await exec(there, other, look)).toBe(files)
    await call(there, 'DELETE', `/servers/${other}`)
    expect((await servers('move', id, '--to', 'local'))[0]).toBe(0)
    expect([await listed('pods'), await listed('persistentvolumeclaims')]).toEqual([[], []])
    const back = await instance('local')
    expect(await exec(back, id, look)).toBe(files)
    await call(back, 'DELETE', `/servers/${id}`)
  }, 180_000)

  test('a server is given new files once its node is lost, and not while it is cordoned; when it is back, nothing is mixed up', async () => {
    const info = await instance('kubernetes')
    await cluster.kubectl('cordon', 'node2')
    const [awake, asleep] = (
      await Promise.all([call(info, 'POST', '/servers'), call(info, 'POST', '/servers')])
    ).map(({ body }) => body.id)
    await exec(info, awake, MAKE)
    await cluster.kubectl('uncordon', 'node2')
    const files = await exec(info, awake, LOOK)
    const archive = join(directory, 'awake.tar')
    expect((await servers('export', awake, archive))[0]).toBe(0)
    await exec(info, awake, '(while :; do date +%s >>ticks; sleep 0.2; done) >/dev/null 2>&1 & rm h')
    expect(await servers('recover', awake, '--yes')).toEqual([
      1,
      expect.stringContaining('nothing to recover'),
    ])
    await call(info, 'POST', `/servers/${asleep}/actions`, { action: 'stop' })
    await cluster.kubectl('cordon', 'node1')
    await until(async () => {
      // One may run for its files alone, as when they are measured.
      for (const { metadata } of await pods(asleep))
        await cluster.kubectl('-n', NAMESPACE, 'delete', 'pod', metadata.name, '--ignore-not-found')
      const [status, said] = await servers('recover', asleep, '--yes')
      expect(status).toBe(1)
      return said.includes('unschedulable')
    }, 'a refusal since the node is cordoned')
    await cluster.kubectl('uncordon', 'node1')
    // What starts on a node that is being lost is waited for, for two minutes.
    const isSettled = async () =>
      (await pods(asleep)).every(
        ({ metadata, status }) => metadata.deletionTimestamp === undefined && status.phase === 'Running',
      )
    await until(isSettled, 'the end of what was tried')
    const [old] = await pods(awake)

    const node = cluster.nodes[0]
    await node?.cut()
    try {
      const lost = async (id: string, ...args: string[]): Promise<string> => {
        const [status, said] = await servers('recover', id, '--yes', ...args)
        expect([status, said]).toEqual([0, expect.stringContaining('node1 does not respond')])
        return said
      }
      const isNoticed = async () => (await cluster.kubectl('get', 'node', 'node1')).includes('NotReady')
      await until(isNoticed, 'a lost node', 60_000)
      const said = await lost(awake, '--from', archive)
      expect(await exec(info, awake, LOOK)).toBe(files)
      expect(await lost(asleep)).toContain(`All files of ${asleep} are lost.`)
      expect(await exec(info, asleep, 'echo here')).toBe('here\n')
      // Nothing of the old one was deleted.
      const kept = (await pods(awake)).find(({ metadata }) => metadata.uid === old?.metadata.uid)
      expect([kept?.spec.nodeName, kept?.metadata.deletionTimestamp]).toEqual(['node1', undefined])
      expect(await listed('persistentvolumeclaims', awake)).toHaveLength(2)

      await node?.join()
      await until(
        async () => (await podsOn(awake, 'Succeeded')).includes('node1'),
        'the end of the old pod',
        60_000,
      )
      expect(await podsOn(awake, 'Running')).toEqual(['node2'])
      expect(await exec(info, awake, LOOK)).toBe(files)
      const removals = said.match(/kubectl delete .*/g) ?? []
      for (const removal of removals) await cluster.kubectl(...removal.split(' ').slice(1))
      const claims = async () => (await listed('persistentvolumeclaims', awake)).length
      await until(async () => (await claims()) === 1, 'one claim')
      expect([removals.length, (await pods(awake)).length]).toEqual([2, 1])
      expect(await exec(info, awake, LOOK)).toBe(files)
    } finally {
      await node?.join()
    }
  }, 400_000)
})
