import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/processes.ts'
import { serveForTests } from './command.ts'
import { projectCommands } from './project-commands.ts'

const berth = await serveForTests()
await berth.server()

const { projects, json, write } = projectCommands(() => berth)

const FILES = {
  'web.ts':
    "Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('web') })",
  'work.ts': "console.log('works'); setInterval(() => {}, 1000)",
}

test('logs of a project are those of one worker, if it is named', async () => {
  write('post', { ...FILES, Procfile: 'web: bun web.ts\nworker: bun work.ts\nclock: echo tick' })
  await projects('create', 'post')
  const clock = () => projects('logs', 'post', '--worker', 'clock')
  await until(async () => (await clock()).stdout !== '', 'the clock to print')
  expect((await clock()).stdout).toBe('clock    tick\n')
  expect(await json('logs', 'post', '--worker', 'worker', '--since', '1h')).toMatchObject({
    logs: [{ source: 'worker', worker: 'worker', text: 'works' }],
  })
  expect(await projects('logs', 'post', '--worker', 'mial')).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr: 'berth: post has no worker "mial". Its workers: worker, clock.\n',
  })
})

test('a push turns an app into a worker and back, and what it has is that of its version', async () => {
  const push = async (manifest: object) => {
    write('shop', { 'berth.json': JSON.stringify(manifest) })
    const { exitCode } = await projects('push', 'shop')
    return { exitCode, project: await json('get', 'shop') }
  }
  const app = { start: 'bun web.ts' }
  const worker = { kind: 'worker', start: 'bun work.ts' }
  const isWorker = {
    url: null,
    runtime_status: 'running',
    app: { start: null },
    workers: [{ name: 'worker', status: 'running' }],
  }
  write('shop', { ...FILES, 'berth.json': JSON.stringify(app) })
  await projects('create', 'shop', '--public')
  const { url } = await json('get', 'shop')
  const isApp = { url, runtime_status: 'running', app: { start: 'bun web.ts' }, workers: [] }

  expect(await push(worker)).toMatchObject({ exitCode: 0, project: isWorker })
  expect((await fetch(String(url))).status).toBe(503)
  // An app that does not come up leaves the worker, and a worker that does not leaves the app.
  expect(await push({ start: 'exit 3' })).toMatchObject({ exitCode: 1, project: isWorker })
  expect(await push(app)).toMatchObject({ exitCode: 0, project: isApp })
  expect(await push({ kind: 'worker', start: 'exit 3' })).toMatchObject({ exitCode: 1, project: isApp })
  expect(await (await fetch(String(url))).text()).toBe('web')
  expect(await push(worker)).toMatchObject({ exitCode: 0, project: isWorker })
  write('shop', { 'index.html': 'page' })
  expect(await push({ static: { folder: '.' } })).toMatchObject({ project: { url, workers: [] } })
  expect(await (await fetch(String(url))).text()).toBe('page')
  rmSync(join(berth.cwd, 'shop'), { recursive: true })
})
