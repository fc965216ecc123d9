import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import {
  archiveOf,
  created,
  logged,
  ready,
  type ShownProject,
  settled,
  shown,
} from '../../support/projects.ts'

const berth = await berthForTests({ flags: { plan: { projects: { small: 20 } } } })
const serverId = await berth.server()

const WEB = `Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('web') })`

/** Prints what it gets, and whether another one of its kind runs. Takes its time to end. */
const WORKER = `
const { existsSync, rmSync, writeFileSync } = require('fs')
console.log(existsSync('held') ? 'two at once' : 'begins', process.env.PORT, process.env.KEY, process.env.BERTH_URL)
writeFileSync('held', '')
process.on('SIGTERM', () => setTimeout(() => { rmSync('held'); process.exit(0) }, 300))
setInterval(() => {}, 1000)
`

interface Line {
  source: string
  worker?: string
  text: string
}

const linesOf = async (id: string): Promise<Line[]> =>
  (await berth.call('GET', `/projects/${id}/logs?tail=500`)).body.logs

const workersOf = async (id: string): Promise<Array<{ name: string }>> =>
  (await shown(berth, id)).workers as never

/** What workers have printed, by name. */
const printed = async (id: string, worker: string): Promise<string[]> =>
  (await linesOf(id)).filter((line) => line.worker === worker).map(({ text }) => text)

/** The commands of a project's processes. */
const processesOf = async ({ id }: ShownProject): Promise<string[]> => {
  const { body } = await berth.call('GET', `/servers/${serverId}/processes`)
  return body.processes
    .filter((one: { belongs_to: { id: string } | null }) => one.belongs_to?.id === id)
    .map(({ command }: { command: string }) => command)
}

describe('beside an app', () => {
  test('workers of a Procfile run, restart and end as it says, and are never two', async () => {
    const source = await archiveOf({
      'web.ts': WEB,
      'work.ts': WORKER,
      Procfile: [
        'web: bun web.ts',
        'release: echo released with $KEY',
        'worker: bun work.ts',
        'clock: echo tick; exit 3',
        'cron: echo once',
        'console: bun repl',
      ].join('\n'),
    })
    const project = await ready(berth, serverId, { visibility: 'public', source, env: { KEY: 'sesame' } })
    const { id, url, workers, app } = project
    expect(await (await fetch(url ?? '')).text()).toBe('web')
    expect(workers).toMatchObject([
      { name: 'worker', command: 'bun work.ts', status: 'running', exit_code: null, restarts: 0 },
      { name: 'clock', command: 'echo tick; exit 3' },
      { name: 'cron', status: 'stopped', exit_code: 0, restarts: 0 },
    ])
    expect(app).toMatchObject({
      release: 'echo released with $KEY',
      workers: { worker: 'bun work.ts', clock: 'echo tick; exit 3', cron: 'echo once' },
      left_out: [{ what: '"console" of the Procfile' }],
    })
    await until(
      async () => (await workersOf(id))[1] !== undefined && (await printed(id, 'clock')).length > 1,
      'the clock to be started again',
    )
    const lines = await linesOf(id)
    expect(lines).toContainEqual(expect.objectContaining({ source: 'release', text: 'released with ***' }))
    expect(lines).toContainEqual(expect.objectContaining({ source: 'worker', worker: 'cron', text: 'once' }))
    // Without a port, with what the app has else.
    const begun = `begins undefined *** ${url?.replace(/\/$/, '')}`
    expect(await printed(id, 'worker')).toEqual([begun])
    expect(await processesOf(project)).toContain('bun work.ts')

    expect((await berth.call('POST', `/projects/${id}/restart`)).status).toBe(202)
    expect((await settled(berth, id)).init_phase).toBe('ready')
    expect(await printed(id, 'worker')).toEqual([begun, begun])
    expect((await processesOf(project)).filter((command) => command === 'bun work.ts')).toHaveLength(1)
    // Of the app alone and not of its worker.
    expect((await shown(berth, id)).crash).toBeUndefined()
    expect((await berth.call('DELETE', `/projects/${id}`)).status).toBe(200)
    expect(await processesOf(project)).toEqual([])
  })

  test('a version that does not come up leaves the workers of the one before', async () => {
    const files = { 'web.ts': WEB, 'work.ts': WORKER }
    const start = 'test ! -e broken && bun web.ts'
    const manifest = { start, workers: { mail: 'bun work.ts' } }
    const source = await archiveOf({ ...files, 'berth.json': JSON.stringify(manifest) })
    const project = await ready(berth, serverId, { source })
    const path = `projects/${project.slug}/broken`
    await berth.call('PUT', `/servers/${serverId}/files`, { path, content: '' })
    await berth.call('POST', `/projects/${project.id}/restart`)
    expect((await settled(berth, project.id)).init_phase).toBe('failed')
    expect(await workersOf(project.id)).toMatchObject([{ name: 'mail', status: 'running', restarts: 0 }])
    expect((await printed(project.id, 'mail')).length).toBe(1)
    await berth.call('DELETE', `/projects/${project.id}`)
  })

  test('a release that fails fails the version, and nothing of it starts', async () => {
    const source = await archiveOf({ 'web.ts': WEB, Procfile: 'release: exit 7\nweb: bun web.ts\nworker: w' })
    const { id } = await settled(berth, (await created(berth, serverId, { source })).id)
    expect(await shown(berth, id)).toMatchObject({ init_phase: 'failed', runtime_status: 'unbuilt' })
    const log = await logged(berth, id)
    expect(log).toContain('The release command failed with exit code 7: exit 7')
    expect(log).not.toContain('Starts')
  })
})

describe('a project that is a worker', () => {
  test('has no port, no URL and no health check, and goes and comes with its server', async () => {
    const source = await archiveOf({
      'work.ts': WORKER,
      'berth.json': '{"kind": "worker", "start": "bun work.ts"}',
    })
    const server = await berth.server()
    const project = await ready(berth, server, { visibility: 'public', source })
    const { id } = project
    expect(project).toMatchObject({
      url: null,
      runtime_status: 'running',
      app: { start: null, serves: null },
    })
    expect(project.workers).toMatchObject([{ name: 'worker', status: 'running' }])
    const phases = (project.init_phases as Array<{ phase: string }>).map(({ phase }) => phase)
    expect(phases).not.toContain('healthcheck')
    expect(await printed(id, 'worker')).toEqual(['begins undefined undefined undefined'])
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    await until(async () => (await shown(berth, id)).runtime_status === 'paused', 'the worker to rest')
    expect(await workersOf(id)).toMatchObject([{ status: 'stopped', exit_code: null }])
    await berth.call('POST', `/servers/${server}/actions`, { action: 'start' })
    await until(async () => (await printed(id, 'worker')).length === 2, 'the worker to run again')
    expect((await shown(berth, id)).runtime_status).toBe('running')
  })

  test('may be declared when it is made, and its end with success is not a failure', async () => {
    const source = await archiveOf({ 'main.ts': 'console.log("done")' })
    const { id, workers, url } = await ready(berth, serverId, {
      kind: 'worker',
      visibility: 'public',
      source,
    })
    expect(workers).toEqual([
      { name: 'worker', command: 'bun main.ts', status: 'stopped', exit_code: 0, restarts: 0 },
    ])
    expect(url).toBeNull()
    expect((await shown(berth, id)).runtime_status).toBe('paused')
  })

  test('that ends within 2 s fails, with the cause; the version before is started again', async () => {
    const broken = 'test ! -e broken || exit 5; bun work.ts'
    const source = await archiveOf({
      'work.ts': WORKER,
      'berth.json': JSON.stringify({ kind: 'worker', start: broken }),
    })
    const { id, slug } = await ready(berth, serverId, { source })
    const path = `projects/${slug}/broken`
    await berth.call('PUT', `/servers/${serverId}/files`, { path, content: '' })
    await berth.call('POST', `/projects/${id}/restart`)
    expect((await settled(berth, id)).init_phase).toBe('failed')
    const log = await logged(berth, id)
    expect(log).toContain('The worker "worker" did not start: it ended with exit code 5.')
    expect(log).toContain('The version before is started again.')
    expect(await workersOf(id)).toMatchObject([{ status: 'failed', exit_code: 5 }])
  })
})

test('what a server publishes has workers, too', async () => {
  const server = await berth.server()
  const put = (path: string, content: string) =>
    berth.call('PUT', `/servers/${server}/files`, { path, content })
  await put('web.ts', WEB)
  await put('work.ts', WORKER)
  await put('Procfile', 'web: bun web.ts\nmailworker: bun work.ts')
  const { status, body } = await berth.call('POST', `/servers/${server}/deployments`)
  expect(status).toBe(201)
  const [deployment] = (await berth.call('GET', `/servers/${server}/deployments`)).body.deployments
  expect(deployment.workers).toMatchObject([{ name: 'mailworker', status: 'running' }])
  const { logs } = (await berth.call('GET', `/servers/${server}/deployments/logs?tail=100`)).body
  const url = body.url.replace(/\/$/, '')
  expect(logs).toContainEqual(
    expect.objectContaining({
      source: 'worker',
      worker: 'mailworker',
      text: `begins undefined undefined ${url}`,
    }),
  )
})
