import { existsSync } from 'node:fs'
import { messageOf } from '../../src/runtime/error-info.ts'
import { EngineRig, missingForEngine } from '../../test/support/engines/engine-rig.ts'
import { Cluster } from '../../test/support/kubernetes/cluster.ts'
import { clusterPath, missingForCluster } from '../../test/support/kubernetes/executable.ts'
import { SERVER_IMAGE } from '../../test/support/kubernetes/image.ts'
import { barePod } from './bare-pod.ts'
import { download, type RawClient, rawClient, requestRate } from './http-clients.ts'
import { executable, type Instance, startInstance } from './instance.ts'
import { inTurns, median, ms, print, type Row, ratioOf, samples, time, times } from './measure.ts'
import { publish } from './proxy.ts'

const STARTS = 5
const COMMANDS = 100
const FILES = 100
const ROUNDS = 5

/** The namespace of servers in the cluster. */
const NAMESPACE = 'servers'

/** A berth whose servers run in one place, and what it takes to remove that. */
interface Place {
  readonly berth: Instance
  /** Returns the milliseconds of a pod made by bare calls until it has run a command; null where servers are no pods. */
  readonly bare: (() => Promise<number>) | null
  readonly name: PlaceName
}

type PlaceName = 'local' | 'Docker' | 'Kubernetes'

/** What one place takes, by measurement, in rounds. */
type Taken = Record<PlaceName, number[]>

/**
 * Measures servers of this machine, on a Docker engine and in a Kubernetes cluster side by side, each through a berth of its
 * own: start, commands, files, an app's port, many at once. An engine that this machine lacks is passed over with the reason.
 *
 * @param all whether 50 servers are made at once, in place of 20
 */
export async function benchEngines(all: boolean): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const places = [await local(stack), await onDocker(stack), await onKubernetes(stack)].filter(
    (place) => place !== null,
  )
  await benchStarts(places)
  await benchUse(places)
  await benchPorts(places)
  await benchMany(places, all ? 50 : 20)
}

/** Options of every berth: a server that was started before would hide what a start takes. */
const options = (ports: string, ...flags: string[]): string[] => [
  ...['--ephemeral', '--spare-servers', '0', '--project-ports', ports],
  ...flags,
]

async function local(stack: AsyncDisposableStack): Promise<Place> {
  const berth = stack.use(await startInstance(options('6500-6549', '--compute', 'local')))
  return { name: 'local', berth, bare: null }
}

async function onDocker(stack: AsyncDisposableStack): Promise<Place | null> {
  const missing = missingForEngine('docker')
  if (missing !== null) return skip('Docker', missing)
  const rig = stack.use(await EngineRig.start('docker'))
  await rig.prepare()
  const flags = options('6550-6599', '--compute', 'docker', '--engine', `unix://${rig.socket}`)
  return { name: 'Docker', berth: stack.use(await startInstance(flags)), bare: null }
}

async function onKubernetes(stack: AsyncDisposableStack): Promise<Place | null> {
  const missing = missingForCluster()
  if (missing !== null) return skip('Kubernetes', missing)
  if (!existsSync(clusterPath()))
    return skip(
      'Kubernetes',
      'the cluster is not built: "bun test/support/kubernetes/executable.ts" does that.',
    )
  const cluster = stack.use(await Cluster.start({ nodes: 1, executable }))
  await cluster.makeNamespace(NAMESPACE)
  const flags = ['--compute', 'kubernetes', '--kubeconfig', cluster.kubeconfig]
  const more = ['--kubernetes-namespace', NAMESPACE, '--server-image', SERVER_IMAGE]
  try {
    const berth = stack.use(await startInstance(options('6600-6649', ...flags, ...more)))
    return { name: 'Kubernetes', berth, bare: () => barePod(cluster.client, NAMESPACE, SERVER_IMAGE) }
  } catch (error) {
    return skip('Kubernetes', `berth does not start with it: ${error}`)
  }
}

function skip(name: PlaceName, reason: string): null {
  console.log(`SKIP ${name}: ${reason}`)
  return null
}

/** Takes one measurement in all places, in turns. */
async function inPlaces(
  places: readonly Place[],
  rounds: number,
  warm: number,
  measure: (place: Place) => Promise<number>,
): Promise<Taken> {
  const taken = await inTurns(
    rounds,
    warm,
    Object.fromEntries(places.map((place) => [place.name, () => measure(place)])),
  )
  return { local: [], Docker: [], Kubernetes: [], ...taken }
}

/** Signs by which a figure is judged. */
interface Sign {
  /** The most or the least that the ratio to servers of this machine should be, by place. */
  readonly most?: number
  readonly least?: number
}

/** Returns a row for each place, against servers of this machine. */
function rowsOf(
  what: string,
  taken: Taken,
  format: (value: number) => string,
  signs: Partial<Record<PlaceName, Sign>> = {},
): Row[] {
  const names = (Object.keys(taken) as PlaceName[]).filter((name) => taken[name].some(Number.isFinite))
  return names.map((name) => {
    const row = { what: `${what}, ${name}`, measured: format(median(taken[name])) }
    if (name === 'local') return row
    const ratio = ratioOf(taken[name], taken.local)
    const compared = { ...row, baseline: `local ${format(median(taken.local))}`, ratio: times(ratio) }
    const { most, least } = signs[name] ?? {}
    if (most !== undefined) return { ...compared, goal: `≤ ${most} ×`, met: ratio <= most }
    if (least !== undefined) return { ...compared, goal: `≥ ${least} ×`, met: ratio >= least }
    return compared
  })
}

async function benchStarts(places: readonly Place[]): Promise<void> {
  const taken = await inPlaces(places, STARTS, 1, async ({ berth }) => {
    let made = ''
    const taken = await time(async () => {
      const { id } = await berth.call('POST', '/servers')
      await berth.call('POST', `/servers/${id}/exec`, { command: 'true' })
      made = id
    })
    await berth.call('DELETE', `/servers/${made}`)
    return taken
  })
  const rows = rowsOf('create → first command', taken, ms, { Docker: { most: 12 } })
  for (const { name, bare } of places) {
    if (bare === null) continue
    const base = await samples(STARTS, 1, async () => {})
    for (let round = 0; round < STARTS; round += 1) base[round] = await bare()
    const ratio = median(taken[name]) / median(base)
    rows.push({
      ...{ what: `create → first command, ${name}`, measured: ms(median(taken[name])) },
      ...{ baseline: `a pod by bare calls ${ms(median(base))}`, ratio: times(ratio) },
      ...{ goal: '≤ 1.3 ×', met: ratio <= 1.3 },
    })
  }
  print('A server, by what runs it, medians', rows)
}

async function benchUse(places: readonly Place[]): Promise<void> {
  const ids = new Map<Place, string>()
  for (const place of places) ids.set(place, (await place.berth.call('POST', '/servers')).id)
  const measured = (
    count: number,
    open: (at: string, berth: Instance) => Promise<RawClient>,
  ): Promise<Taken> =>
    inPlaces(places, ROUNDS, 1, async (place) => {
      // A connection of each round's own: berth closes one that is idle while others are measured.
      using client = await open(`/servers/${ids.get(place)}`, place.berth)
      return median(await samples(count, 5, () => client.send()))
    })
  const file = { path: 'a.txt', content: 'x'.repeat(100) }
  const [exec, write, read] = [
    await measured(COMMANDS, (at, { url, key }) => rawClient(url, `${at}/exec`, key, { command: 'true' })),
    await measured(FILES, (at, { url, key }) => rawClient(url, `${at}/files`, key, file, 'PUT')),
    await measured(FILES, (at, { url, key }) => rawClient(url, `${at}/files?path=a.txt`, key)),
  ]
  const most = { most: 2 }
  const rows = [
    ...rowsOf('exec of true over HTTP', exec, ms, { Docker: most, Kubernetes: most }),
    ...rowsOf('a file of 100 B, written', write, ms),
    ...rowsOf('a file of 100 B, read', read, ms),
  ]
  print(
    'Commands and files, medians',
    rows.map((row) => withinMillisecond(row, { write, read })),
  )
}

/** Judges the files of Docker by their time, not by a ratio. */
function withinMillisecond(row: Row, { write, read }: Record<'write' | 'read', Taken>): Row {
  if (!/file.*Docker$/.test(row.what)) return row
  const taken = row.what.includes('written') ? write : read
  return { ...row, goal: '≤ 1 ms', met: median(taken.Docker) <= 1 }
}

async function benchPorts(places: readonly Place[]): Promise<void> {
  const urls = new Map<Place, string>()
  for (const place of places) urls.set(place, (await publish(place.berth)).url)
  const rates = await inPlaces(places, ROUNDS, 1, (place) => requestRate(urls.get(place) ?? ''))
  const large = await inPlaces(places, ROUNDS, 1, (place) => download(`${urls.get(place)}large`))
  const least = { least: 0.5 }
  const throughput = rowsOf('MB/s of large responses', large, (value) => value.toFixed(0)).map((row) => {
    const [, name = 'local'] = /, (\w+)$/.exec(row.what) ?? []
    return name === 'local' ? row : { ...row, goal: '≥ 70 MB/s', met: median(large[name as PlaceName]) >= 70 }
  })
  print('An app through the gateway, 32 connections', [
    ...rowsOf('requests a second', rates, (value) => value.toFixed(0), {
      ...{ Docker: least, Kubernetes: least },
    }),
    ...throughput,
  ])
}

async function benchMany(places: readonly Place[], count: number): Promise<void> {
  const refusals: Row[] = []
  const taken = await inPlaces(places, 1, 0, async ({ name, berth }) => {
    const { servers } = await berth.call('GET', '/servers')
    for (const { id } of servers) await berth.call('DELETE', `/servers/${id}`)
    const outcomes: PromiseSettledResult<{ id: string }>[] = []
    const taken = await time(async () => {
      const all = Array.from({ length: count }, () => berth.call('POST', '/servers'))
      outcomes.push(...(await Promise.allSettled(all)))
    })
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [messageOf(one.reason)] : []))
    for (const one of outcomes)
      if (one.status === 'fulfilled') await berth.call('DELETE', `/servers/${one.value.id}`)
    if (refused.length === 0) return taken
    const [reason = ''] = refused
    const [, text = reason] = /"message":"(.*)"/.exec(reason) ?? []
    refusals.push({ what: `${refused.length} of them refused, ${name}`, measured: text })
    return Number.NaN
  })
  print(`${count} servers at once, all running`, [...rowsOf('POST /servers', taken, ms), ...refusals])
}
