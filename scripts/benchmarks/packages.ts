import { World } from '../../test/hosting/registries/world.ts'
import { median, ms, print, time, times } from './measure.ts'

/** Packages of the app, in three layers that depend on the next: a registry is asked three times in a row. */
const LAYERS = 3
const PER_LAYER = 10

/** Bytes of each that cannot be compressed. */
const BALLAST = 20_000

/** Milliseconds that the registry takes for each answer, as one across the internet does. */
const LATENCY_MS = 40

/** Servers that install in each way. */
const RUNS = 5

/** What an install takes: straight from a registry, through an empty cache, and for every server after the first. */
export async function benchPackages(): Promise<void> {
  const direct: number[] = []
  const first: number[] = []
  const second: number[] = []
  for (let run = 0; run < RUNS; run++) {
    await using world = new World(publications())
    world.registry.intercept = () => Bun.sleep(LATENCY_MS).then(() => null)
    direct.push(await install(world, 'direct', { BUN_CONFIG_REGISTRY: world.registry.url }))
    first.push(await install(world, 'first'))
    second.push(await install(world, 'second'))
  }
  const baseline = median(direct)
  const row = (what: string, values: readonly number[]) => ({
    what,
    measured: ms(median(values)),
    baseline: ms(baseline),
    ratio: times(median(values) / baseline),
  })
  print(
    `bun install of ${LAYERS * PER_LAYER} packages, registry ${LATENCY_MS} ms away (baseline: no cache)`,
    [
      row('first server, empty cache', first),
      {
        ...row('second server', second),
        goal: '≤ 0.75 ×',
        met: median(second) <= 0.75 * baseline,
      },
    ],
  )
}

async function install(world: World, name: string, env: Record<string, string> = {}): Promise<number> {
  const names = layer(0)
  const dependencies = Object.fromEntries(names.map((one) => [one, '^1.0.0']))
  const server = await world.server(`srv_${name}`, { 'package.json': { name: 'app', dependencies } })
  return time(async () => {
    const { exitCode, stderr } = await server.install('bun install', { env })
    if (exitCode !== 0) throw new Error(`bun install failed: ${stderr}`)
  })
}

const layer = (depth: number): string[] =>
  Array.from({ length: PER_LAYER }, (_, index) => `p${depth}-${index}`)

const publications = () =>
  Array.from({ length: LAYERS }, (_, depth) =>
    layer(depth).map((name, index) => ({
      name,
      ballast: BALLAST,
      dependencies: depth + 1 < LAYERS ? { [`p${depth + 1}-${index}`]: '^1.0.0' } : {},
    })),
  ).flat()
