import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { END_SIGNAL } from '../support/compute.ts'
import { processesOf, until } from '../support/processes.ts'
import { archiveOf } from '../support/projects.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

let folder: string
let berth: ServeProcess
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-bring-up-'))
})
afterEach(async () => {
  await kill(END_SIGNAL)
  await until(() => processesOf(folder).length === 0, 'no process to be left', 20_000)
  rmSync(folder, { recursive: true, force: true })
})

const start = async () => {
  const options = ['--isolation', 'none', '--allow-local-sources']
  berth = serve(['--port', '0', '--data', folder, '--log-level', 'error', ...options])
  return berth.ready
}

const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
  berth.child.kill(signal)
  await berth.child.exited
}

type Info = Awaited<ReturnType<typeof start>>

/** An app each of whose steps counts how often it was begun, and waits until it is let go on. */
const APP = {
  'berth.json': JSON.stringify({
    install: 'echo >> began-install; until [ -e go-install ]; do sleep 0.05; done',
    build: 'echo >> began-build; until [ -e go-build ]; do sleep 0.05; done',
    start: 'exec bun app.ts',
    health: '/health',
    env: { TOKEN: { required: true } },
  }),
  'app.ts': `import { existsSync } from 'node:fs'
    Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: (request) =>
      new Response(process.env.TOKEN, { status: request.url.endsWith('/health') && !existsSync('go-healthcheck') ? 500 : 200 }) })`,
}

const PHASES = ['install', 'build', 'awaiting_secrets', 'healthcheck'] as const

async function begin(info: Info) {
  const server = (await call(info, 'POST', '/servers')).body.id
  const wishes = { name: 'resumed', visibility: 'public', source: await archiveOf(APP) }
  const { body } = await call(info, 'POST', `/servers/${server}/projects`, wishes)
  return { server, id: body.id as string, url: body.url as string, run: body.init_run_id as string }
}

const letGo = (info: Info, server: string, phase: string) =>
  call(info, 'PUT', `/servers/${server}/files`, { path: `projects/resumed/go-${phase}`, content: '' })

const give = (info: Info, id: string) =>
  call(info, 'PUT', `/projects/${id}/secrets`, { secrets: { TOKEN: 'given' } })

const reach = (info: Info, id: string, phase: string) =>
  until(
    async () => (await call(info, 'GET', `/projects/${id}`)).body.init_phase === phase,
    `the bring-up to be in ${phase}`,
    30_000,
  )

const eventsOf = async (info: Info, id: string): Promise<string[]> => {
  const headers = { authorization: `Bearer ${info.admin_token}` }
  const response = await fetch(`${info.base_url}/_berth/events`, { headers })
  const { events } = (await response.json()) as { events: { event: string; data: { project_id?: string } }[] }
  return events.filter(({ data }) => data.project_id === id).map(({ event }) => event)
}

/** Its site opens a moment after the start; from then on callers wait until the app runs. */
const answers = (url: string) =>
  until(
    () =>
      fetch(url).then(
        async (response) => (await response.text()) === 'given',
        () => false,
      ),
    'the app to answer',
    20_000,
  )

/** Does what each phase waits for, up to one that is left waiting. */
async function advanceTo(info: Info, { server, id }: { server: string; id: string }, last: string) {
  for (const phase of PHASES) {
    // The variables are asked for before the build.
    if (phase === last) return reach(info, id, phase)
    if (phase === 'awaiting_secrets') continue
    await letGo(info, server, phase)
    if (phase === 'install' && last !== 'awaiting_secrets') {
      await reach(info, id, 'awaiting_secrets')
      await give(info, id)
    }
    if (phase === 'install' && last === 'awaiting_secrets') return reach(info, id, 'awaiting_secrets')
  }
}

describe('a bring-up that kill -9 cuts short', () => {
  test.each(PHASES)(
    'in %s goes on there, with the same run, to an app that answers',
    async (phase) => {
      const first = await start()
      const project = await begin(first)
      await advanceTo(first, project, phase)
      await kill()

      const info = await start()
      await reach(info, project.id, phase)
      await give(info, project.id)
      for (const step of ['install', 'build', 'healthcheck']) await letGo(info, project.server, step)
      await reach(info, project.id, 'ready')
      const { body } = await call(info, 'GET', `/projects/${project.id}`)
      expect(body).toMatchObject({ init_run_id: project.run, runtime_status: 'running', url: project.url })
      await answers(project.url)
      const events = await eventsOf(info, project.id)
      expect(events.filter((event) => event === 'project.ready')).toHaveLength(1)
      expect(events).not.toContain('project.init_failed')
    },
    120_000,
  )

  test('in fetch fetches again, and nothing half is left', async () => {
    const { data } = (await archiveOf({ 'index.html': 'fetched' })) as { data: string }
    const archive = Buffer.from(data, 'base64')
    const asked = Promise.withResolvers<void>()
    let times = 0
    using origin = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: 0,
      fetch() {
        times += 1
        if (times > 1) return new Response(archive)
        // Half of it, and then nothing.
        asked.resolve()
        const half = archive.subarray(0, archive.length / 2)
        return new Response(new ReadableStream({ start: (controller) => controller.enqueue(half) }))
      },
    })
    const first = await start()
    const server = (await call(first, 'POST', '/servers')).body.id
    const source = { type: 'archive', url: `http://127.0.0.1:${origin.port}/app.tar.gz` }
    const wishes = { name: 'resumed', visibility: 'public', source }
    const { id, init_run_id } = (await call(first, 'POST', `/servers/${server}/projects`, wishes)).body
    await asked.promise
    await kill()
    const info = await start()
    await reach(info, id, 'ready')
    const { body } = await call(info, 'GET', `/projects/${id}`)
    expect(body.init_run_id).toBe(init_run_id)
    expect(await (await fetch(body.url)).text()).toBe('fetched')
    const { files } = (await call(info, 'GET', `/servers/${server}/files?all=true`)).body
    expect(files).toEqual(['projects/resumed/index.html'])
    expect(times).toBe(2)
  }, 120_000)

  test('at any moment, again and again, comes to its end all the same', async () => {
    let info = await start()
    const project = await begin(info)
    for (const step of ['install', 'build', 'healthcheck']) await letGo(info, project.server, step)
    await give(info, project.id)
    for (let round = 0; round < 12; round += 1) {
      await Bun.sleep(round * 20)
      await kill()
      info = await start()
    }
    await reach(info, project.id, 'ready')
    await answers(project.url)
    expect(
      (await eventsOf(info, project.id)).filter((event) => event !== 'project.secrets_required'),
    ).toEqual(['project.ready'])
  }, 120_000)

  test('when it is over, the app runs again with the next start', async () => {
    const first = await start()
    const project = await begin(first)
    await give(first, project.id)
    for (const step of ['install', 'build', 'healthcheck']) await letGo(first, project.server, step)
    await reach(first, project.id, 'ready')
    await kill()
    const info = await start()
    await answers(project.url)
    expect(await eventsOf(info, project.id)).not.toContain('project.init_failed')
  }, 120_000)
})
