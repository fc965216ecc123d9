import { type Instance, startInstance } from './instance.ts'
import { median, ms, print, samples } from './measure.ts'

/** How often each is built. */
const BUILDS = 7

/** Builds that one server is given at once. */
const QUEUED = 10

/** How long it takes from a goal to an app that answers, with an agent that has nothing to do. */
export async function benchBuilds(): Promise<void> {
  await using berth = await startInstance(undefined, ['--project-ports', '6600-6699'])
  // Loads what builds need, which is done once.
  await build(berth, await serverOf(berth), 'A landing page')
  const site = await samples(BUILDS, 1, async () => build(berth, await serverOf(berth), 'A landing page'))
  const api = await samples(BUILDS, 1, async () => build(berth, await serverOf(berth), 'A todo API'))
  const queue = await samples(3, 0, () => buildInTurn(berth))
  print('Builds', [
    {
      what: 'goal → app that answers, static site',
      measured: ms(median(site)),
      goal: '≤ 1000 ms',
      met: median(site) <= 1_000,
    },
    { what: 'the same, Bun API', measured: ms(median(api)), goal: '≤ 2000 ms', met: median(api) <= 2_000 },
    { what: `${QUEUED} builds in turn on one server, each`, measured: ms(median(queue) / QUEUED) },
  ])
}

const serverOf = async (berth: Instance): Promise<string> => (await berth.call('POST', '/servers')).id

/** Builds an app for a goal; resolves when its URL has answered. */
async function build(berth: Instance, server: string, goal: string): Promise<void> {
  const { build_id } = await berth.call('POST', `/servers/${server}/builds`, { goal })
  const url = await urlOf(berth, server, build_id)
  const response = await fetch(url)
  if (response.status !== 200) throw new Error(`${goal}: ${url} answers with ${response.status}`)
}

async function buildInTurn(berth: Instance): Promise<void> {
  const server = await serverOf(berth)
  const begun = Array.from({ length: QUEUED }, () =>
    berth.call('POST', `/servers/${server}/builds`, { goal: 'A landing page' }),
  )
  await Promise.all((await Promise.all(begun)).map(({ build_id }) => urlOf(berth, server, build_id)))
}

/** Waits until a build is over. */
async function urlOf(berth: Instance, server: string, id: string): Promise<string> {
  const path = `/servers/${server}/builds/${id}`
  for (;;) {
    const { build } = await berth.call('GET', path)
    if (build.status === 'completed' && build.url !== null) return build.url
    if (build.status === 'completed')
      throw new Error(JSON.stringify(await berth.call('GET', `${path}/logs?tail=20`)))
    await Bun.sleep(5)
  }
}
