import { type Instance, startInstance } from './instance.ts'
import { CONNECTIONS, downloadRate, latency, program, requestRate } from './load.ts'
import { median, ms, print, type Row, times } from './measure.ts'

const ROUNDS = 5
const LATENCY_REQUESTS = 2_000
const MEGABYTES = 100

/** What is published: one answer that costs nothing, one that is built as pages are, one that is large. */
const APP = `
const row = (n) => ({ id: 'item_' + n, name: 'Item number ' + n, price: n * 1.25, tags: ['a', 'b', n % 7] })
const large = new Uint8Array(${MEGABYTES}e6)
Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch(request) {
  const path = request.url.slice(request.url.indexOf('/', 7))
  if (path === '/page') return Response.json(Array.from({ length: 120 }, (_, n) => row(n)))
  if (path === '/large') return new Response(large)
  if (path === '/port') return new Response(process.env.PORT)
  return new Response('hello world')
} })`

/** Copies bytes between a client and the app, and reads none of them. */
const pipe = (port: number): string => `
const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: {
  open(client) {
    client.data = { early: [], app: null }
    Bun.connect({ hostname: '127.0.0.1', port: ${port}, data: client, socket: {
      open(app) { client.data.app = app; for (const bytes of client.data.early) app.write(bytes) },
      data: (app, bytes) => void app.data.write(bytes),
      close: (app) => void app.data.end(),
    } })
  },
  data(client, bytes) { client.data.app ? client.data.app.write(bytes) : client.data.early.push(bytes) },
  close: (client) => void client.data.app?.end(),
} })
console.log(listener.port)`

/** A public project with the app. */
async function publish(berth: Instance): Promise<{ url: string; slug: string }> {
  const { id: server } = await berth.call('POST', '/servers', { tier: 'large' })
  const { id, url, slug } = await berth.call('POST', `/servers/${server}/projects`, { visibility: 'public' })
  await berth.call('PUT', `/servers/${server}/files`, { path: `projects/${slug}/index.ts`, content: APP })
  await berth.call('POST', `/projects/${id}/init`, {})
  await berth.control('GET', `/wait?project=${id}&until=ready`)
  return { url, slug }
}

/**
 * An app by its project's port, and by its name at berth's own port, against the app's own port, which only a server
 * without a network of its own shows.
 */
export async function benchProxy(): Promise<void> {
  await using berth = await startInstance(undefined, ['--project-ports', '6400-6499', '--isolation', 'none'])
  const { url, slug } = await publish(berth)
  const named = `${slug}.localhost`
  const port = Number(await (await fetch(`${url}port`)).text())
  await using piped = await program(pipe(port))
  const direct = `http://127.0.0.1:${port}/`
  const through = `http://127.0.0.1:${piped.port}/`

  const rates = {
    direct: [] as number[],
    gateway: [] as number[],
    pipe: [] as number[],
    named: [] as number[],
  }
  const pages = { direct: [] as number[], gateway: [] as number[] }
  const waits = { direct: [] as number[], gateway: [] as number[] }
  const large = { direct: [] as number[], gateway: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    rates.direct.push(await requestRate(direct))
    rates.pipe.push(await requestRate(through))
    rates.gateway.push(await requestRate(url))
    rates.named.push(await requestRate(`${berth.url}/`, named))
    pages.direct.push(await requestRate(`${direct}page`))
    pages.gateway.push(await requestRate(`${url}page`))
    waits.direct.push(await latency(direct, LATENCY_REQUESTS))
    waits.gateway.push(await latency(url, LATENCY_REQUESTS))
    large.direct.push(await downloadRate(`${direct}large`))
    large.gateway.push(await downloadRate(`${url}large`))
  }
  const added = median(waits.gateway) - median(waits.direct)
  print(`An app by its project's port, ${CONNECTIONS} connections (autocannon)`, [
    rate('requests a second, an app that answers "hello world"', rates.gateway, rates.direct, 0.7),
    {
      what: 'the same through a pipe that copies bytes: the most that two more passes through the kernel allow',
      measured: median(rates.pipe).toFixed(0),
      baseline: `app's own port: ${median(rates.direct).toFixed(0)}`,
      ratio: times(median(rates.pipe) / median(rates.direct)),
    },
    {
      what: "the same at SLUG.localhost on berth's own port",
      measured: median(rates.named).toFixed(0),
      baseline: `project's port: ${median(rates.gateway).toFixed(0)}`,
      ratio: times(median(rates.named) / median(rates.gateway)),
    },
    rate('requests a second, an app that builds a page of 10 kB', pages.gateway, pages.direct, 0.7),
    {
      what: 'added to an answer at p50, one connection',
      measured: ms(added),
      baseline: `app's own port: ${ms(median(waits.direct))}`,
      goal: '≤ 0.30 ms',
      met: added <= 0.3,
    },
    {
      what: `an answer of ${MEGABYTES} MB`,
      measured: `${median(large.gateway).toFixed(0)} MB/s`,
      baseline: `app's own port: ${median(large.direct).toFixed(0)} MB/s`,
      ratio: times(median(large.gateway) / median(large.direct)),
    },
  ])
}

function rate(what: string, gateway: number[], direct: number[], goal: number): Row {
  const ratio = median(gateway) / median(direct)
  return {
    what,
    measured: median(gateway).toFixed(0),
    baseline: `app's own port: ${median(direct).toFixed(0)}`,
    ratio: times(ratio),
    goal: `≥ ${goal.toFixed(2)} ×`,
    met: ratio >= goal,
  }
}
