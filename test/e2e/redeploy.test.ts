import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { END_SIGNAL } from '../support/compute.ts'
import { processesOf, until } from '../support/processes.ts'
import { archiveOf } from '../support/projects.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

/** What is left of apps that ran when berth is ended, and they do not come up again. */

let folder: string
let berth: ServeProcess
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-redeploy-'))
})
afterEach(async () => {
  await end(END_SIGNAL)
  await until(() => processesOf(folder).length === 0, 'no process to be left', 20_000)
  rmSync(folder, { recursive: true, force: true })
})

const start = async () => {
  const options = ['--isolation', 'none']
  berth = serve(['--port', '0', '--data', folder, '--log-level', 'error', ...options])
  return berth.ready
}

const end = async (signal: NodeJS.Signals) => {
  berth.child.kill(signal)
  await berth.child.exited
}

type Info = Awaited<ReturnType<typeof start>>

/** An app that does not start without its variable V, when the file `strict` is there. */
const APP = `if (require('fs').existsSync('strict') && process.env.V !== 'good') process.exit(9)
  Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('up') })`

const project = async (info: Info, id: string) => (await call(info, 'GET', `/projects/${id}`)).body

const write = (info: Info, server: string, path: string, content = '') =>
  call(info, 'PUT', `/servers/${server}/files`, { path, content })

const becomes = (info: Info, id: string, expected: object) =>
  until(
    async () => Bun.deepMatch(expected, await project(info, id)),
    `the project to be ${JSON.stringify(expected)}`,
    20_000,
  )

async function begin(info: Info) {
  const server: string = (await call(info, 'POST', '/servers')).body.id
  const wishes = { name: 'kept', visibility: 'public', source: await archiveOf({ 'index.ts': APP }) }
  const { id, url } = (await call(info, 'POST', `/servers/${server}/projects`, wishes)).body
  await becomes(info, id, { init_phase: 'ready' })
  return { server, id: id as string, url: url as string }
}

test('an app that does not come up after kill -9 is paused, and runs when its variables are fixed', async () => {
  const first = await start()
  const { server, id, url } = await begin(first)
  await write(first, server, 'projects/kept/strict')
  await end('SIGKILL')
  const info = await start()
  await becomes(info, id, { init_phase: 'ready', runtime_status: 'paused' })
  await call(info, 'PUT', `/projects/${id}/secrets`, { secrets: { V: 'good' } })
  await becomes(info, id, { runtime_status: 'running' })
  expect(await (await fetch(url)).text()).toBe('up')
}, 120_000)

test('a redeploy that fails after kill -9 leaves the project paused', async () => {
  const first = await start()
  const { server, id } = await begin(first)
  const manifest = { install: 'until [ -e go ]; do sleep 0.05; done; exit 4', start: 'exec bun index.ts' }
  await write(first, server, 'projects/kept/berth.json', JSON.stringify(manifest))
  await call(first, 'POST', `/projects/${id}/init`)
  await becomes(first, id, { init_phase: 'install', runtime_status: 'running' })
  await end('SIGKILL')
  const info = await start()
  await write(info, server, 'projects/kept/go')
  await becomes(info, id, { init_phase: 'failed', runtime_status: 'paused' })
}, 120_000)

test('what was published is not said to be public after kill -9 before it answers again', async () => {
  const first = await start()
  const server: string = (await call(first, 'POST', '/servers')).body.id
  await write(first, server, 'index.ts', APP)
  expect((await call(first, 'POST', `/servers/${server}/deployments`)).status).toBe(201)
  await write(first, server, 'strict')
  await end('SIGKILL')
  const info = await start()
  await until(
    async () => (await call(info, 'GET', `/servers/${server}`)).body.server.publicUrl === null,
    'publicUrl to be null',
    20_000,
  )
  await call(info, 'PUT', '/secrets', { server_id: server, secrets: { V: 'good' } })
  await until(
    async () => (await call(info, 'GET', `/servers/${server}`)).body.server.publicUrl !== null,
    'what is published to answer again',
    20_000,
  )
}, 120_000)

test('SIGTERM does not wait for an app that is being asked for its health', async () => {
  const info = await start()
  const server: string = (await call(info, 'POST', '/servers')).body.id
  const source = await archiveOf({ 'berth.json': JSON.stringify({ start: 'exec sleep 600' }) })
  const { id } = (await call(info, 'POST', `/servers/${server}/projects`, { source })).body
  await becomes(info, id, { init_phase: 'healthcheck' })
  const began = performance.now()
  await end('SIGTERM')
  expect(performance.now() - began).toBeLessThan(20_000)
}, 120_000)
