import { download, latency, requestRate, startProgram } from './http-clients.ts'
import { type Instance, startInstance } from './instance.ts'
import { inTurns, median, ms, print, ratioOf, times } from './measure.ts'

const ROUNDS = 5
const LATENCY_REQUESTS = 2_000
const MEGABYTES = 100

/** What is published: one response that costs nothing, and one that is large. */
const APP = `
const large = new Uint8Array(${MEGABYTES}e6)
Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch(request) {
  const path = request.url.slice(request.url.indexOf('/', 7))
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

/** Publishes the app as a public project. */
export async function publish(berth: Instance): Promise<{ url: string; slug: string }> {
  const { id: server } = await berth.call('POST', '/servers', { tier: 'large' })
  const { id, url, slug } = await berth.call('POST', `/servers/${server}/projects`, { visibility: 'public' })
  await berth.call('PUT', `/servers/${server}/files`, { path: `projects/${slug}/index.ts`, content: APP })
  await berth.call('POST', `/projects/${id}/init`, {})
  await berth.control('GET', `/wait?project=${id}&until=ready`)
  return { url, slug }
}

/**
 * Measures an app by its project's port and by its name at berth's own port, on a server with the machine's network and on
 * one with its own, against the app's own port, which only the first shows, and against a pipe.
 */
export async function benchProxy(): Promise<void> {
  const ports = (range: string): string[] => ['--ephemeral', '--project-ports', range]
  await using shared = await startInstance([...ports('6400-6449'), '--isolation', 'none'])
  await using isolated = await startInstance(ports('6450-6499'))
  const { url, slug } = await publish(shared)
  const { url: own } = await publish(isolated)
  const port = Number(await (await fetch(`${url}port`)).text())
  await using piped = await startProgram(pipe(port))
  const direct = `http://127.0.0.1:${port}/`

  const rates = await inTurns(ROUNDS, 1, {
    direct: () => requestRate(direct),
    pipe: () => requestRate(piped.url),
    port: () => requestRate(url),
    named: () => requestRate(`${shared.url}/`, `${slug}.localhost`),
    own: () => requestRate(own),
  })
  const waits = await inTurns(ROUNDS, 1, {
    direct: () => latency(direct, LATENCY_REQUESTS),
    port: () => latency(url, LATENCY_REQUESTS),
    own: () => latency(own, LATENCY_REQUESTS),
  })
  const large = await inTurns(ROUNDS, 1, {
    direct: () => download(`${direct}large`),
    port: () => download(`${url}large`),
    own: () => download(`${own}large`),
  })
  const row = <Name extends string>(
    what: string,
    taken: Record<Name, number[]>,
    [name, base]: [Name, Name],
    format: (value: number) => string = (value) => value.toFixed(0),
  ) => ({
    what,
    measured: format(median(taken[name])),
    baseline: `${BASES[base]} ${format(median(taken[base]))}`,
    ratio: times(ratioOf(taken[name], taken[base])),
  })
  print('An app by berth, 32 connections', [
    row("requests a second, project's port", rates, ['port', 'direct']),
    row('… through a pipe that reads nothing: two more passes through the kernel', rates, ['pipe', 'direct']),
    row("… at SLUG.localhost on berth's own port", rates, ['named', 'port']),
    row('… on a server with a network of its own', rates, ['own', 'port']),
    row("a response, one connection, project's port", waits, ['port', 'direct'], ms),
    row('… on a server with a network of its own', waits, ['own', 'port'], ms),
    row(`MB/s of responses of ${MEGABYTES} MB, project's port`, large, ['port', 'direct']),
    row('… on a server with a network of its own', large, ['own', 'port']),
  ])
}

/** The names of what is compared with. */
const BASES: Readonly<Record<string, string>> = { direct: "app's own port", port: "project's port" }
