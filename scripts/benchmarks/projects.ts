import { type Instance, memoryOf, startInstance, treeOf } from './instance.ts'
import { median, ms, print, samples, time } from './measure.ts'

/** How often each template is brought up. */
const BRING_UPS = 7

/** Calls a second while an app is replaced, and for how long. */
const RATE = 200
const LOAD_MS = 4_000

/** Projects whose memory is summed up. */
const PROJECTS = 20

/** How long projects take from their creation to an app that answers, and what replacing and keeping them costs. */
export async function benchProjects(): Promise<void> {
  await using berth = await startInstance(undefined, ['--project-ports', '6200-6399'])
  const { id: server } = await berth.call('POST', '/servers', { tier: 'large' })
  // Loads what projects need, which is done once.
  await bringUp(berth, server, 'static-site')
  const site = await samples(BRING_UPS, 1, () => bringUp(berth, server, 'static-site'))
  const api = await samples(BRING_UPS, 1, () => bringUp(berth, server, 'bun-api'))
  const redeploy = await replaceUnderLoad(berth)
  const memory = await memoryOfMany(berth)
  print('Projects', [
    {
      what: 'template → ready, static site',
      measured: ms(median(site)),
      goal: '≤ 500 ms',
      met: median(site) <= 500,
    },
    {
      what: 'template → ready, Bun API',
      measured: ms(median(api)),
      goal: '≤ 1500 ms',
      met: median(api) <= 1_500,
    },
    {
      what: `publish again under ${RATE} requests/s: failed of ${redeploy.sent}`,
      measured: String(redeploy.failed),
      goal: '0',
      met: redeploy.failed === 0,
    },
    { what: 'the slowest of these requests', measured: ms(redeploy.slowest) },
    { what: `${PROJECTS} Bun APIs, private memory of all processes`, measured: megabytes(memory.apps) },
    { what: `${PROJECTS} static sites more, private memory of berth`, measured: megabytes(memory.sites) },
  ])
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Makes a project from a template and waits until it is ready. Returns its id. */
async function bringUp(berth: Instance, server: string, template: string): Promise<string> {
  const { id } = await berth.call('POST', `/servers/${server}/projects`, { template, visibility: 'public' })
  for (;;) {
    const { init_phase: phase } = await berth.call('GET', `/projects/${id}`)
    if (phase === 'ready') return id
    if (phase === 'failed') throw new Error(`${template}: ${JSON.stringify(await logOf(berth, id))}`)
    await Bun.sleep(5)
  }
}

const logOf = async (berth: Instance, id: string) =>
  (await berth.call('GET', `/projects/${id}/logs?tail=20`)).logs

/** An app that takes a moment to start, as real ones do. */
const app = (version: number): string =>
  `await Bun.sleep(300)
Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('${version}') })`

/** Publishes twice while requests keep coming. */
async function replaceUnderLoad(berth: Instance) {
  const { id: server } = await berth.call('POST', '/servers')
  const publish = async (version: number): Promise<string> => {
    await berth.call('PUT', `/servers/${server}/files`, { path: 'index.ts', content: app(version) })
    return (await berth.call('POST', `/servers/${server}/deployments`)).url
  }
  const url = await publish(1)
  let [sent, failed, slowest] = [0, 0, 0]
  const answers: Promise<void>[] = []
  const ask = async () => {
    const took = await time(async () => {
      const response = await fetch(url).catch(() => null)
      if (response?.status !== 200 || (await response.text().catch(() => '')) === '') failed += 1
    })
    slowest = Math.max(slowest, took)
  }
  const timer = setInterval(() => {
    sent += 1
    answers.push(ask())
  }, 1_000 / RATE)
  await Bun.sleep(LOAD_MS / 4)
  await publish(2)
  await publish(3)
  await Bun.sleep(LOAD_MS / 4)
  clearInterval(timer)
  await Promise.all(answers)
  if ((await (await fetch(url)).text()) !== '3') throw new Error('not the version that was published last')
  return { sent, failed, slowest }
}

async function memoryOfMany(berth: Instance): Promise<{ apps: number; sites: number }> {
  const own = (pids: number[]): number => pids.reduce((sum, pid) => sum + memoryOf(pid).own, 0)
  const { id: server } = await berth.call('POST', '/servers', { tier: 'large' })
  await Bun.sleep(1_000)
  const before = own(treeOf(berth.pid))
  for (let n = 0; n < PROJECTS; n += 1) await bringUp(berth, server, 'bun-api')
  await Bun.sleep(1_000)
  const withApps = own(treeOf(berth.pid))
  const itself = memoryOf(berth.pid).own
  for (let n = 0; n < PROJECTS; n += 1) await bringUp(berth, server, 'static-site')
  await Bun.sleep(1_000)
  return { apps: withApps - before, sites: memoryOf(berth.pid).own - itself }
}
