import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { isProjectUrl } from '../support/ports.ts'
import { until } from '../support/processes.ts'
import { archiveOf, created, logged, ready, settled, shown } from '../support/projects.ts'

const berth = await berthForTests({ flags: { plan: { projects: { small: 100 } } } })
const serverId = await berth.server()

/** An app that tells one of its variables, for as long as it runs. */
const APP = {
  'index.ts': `const server = Bun.serve({ port: process.env.PORT, hostname: process.env.HOST,
    fetch: (request) => {
      const { pathname } = new URL(request.url)
      if (pathname === '/exit') setTimeout(() => process.exit(3), 10)
      return new Response(String(process.env[pathname.slice(1)] ?? 'an answer'))
    } })
console.log('listening with ' + process.env.TOKEN)`,
}

const isListening = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  )

describe('POST /servers/{serverId}/projects', () => {
  test('makes a blank private project when nothing is wished for', async () => {
    const { status, body } = await berth.call('POST', `/servers/${serverId}/projects`)
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^prj_[0-9a-z]{26}$/),
      server_id: serverId,
      name: expect.stringMatching(/^[a-z]+ [a-z]+$/),
      slug: expect.stringMatching(/^[a-z]+-[a-z]+(-\d+)?$/),
      description: null,
      visibility: 'private',
      lifecycle: 'persistent',
      runtime_status: 'unbuilt',
      template: null,
      directory: null,
      url: null,
      init_phase: null,
      warnings: [],
      workers: [],
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: body.created_at,
    })
    expect((await berth.call('GET', `/projects/${body.id}`)).body).toEqual(body)
  })

  test('brings code up to an app that answers under the URL, with its variables', async () => {
    const project = await created(berth, serverId, {
      name: 'Hello, Wörld!',
      visibility: 'public',
      source: await archiveOf(APP),
      env: { GREETING: 'ahoy' },
    })
    expect(project).toMatchObject({ slug: 'hello-world', runtime_status: 'unbuilt' })
    expect(project.init_run_id).toMatch(/^irun_[0-9a-z]{26}$/)
    expect(project.url ?? '').toSatisfy(isProjectUrl)
    // Callers wait while the app starts.
    expect(await (await fetch(`${project.url}GREETING`)).text()).toBe('ahoy')
    const up = await settled(berth, project.id)
    expect(up).toMatchObject({ init_phase: 'ready', runtime_status: 'running' })
    expect(up.init_run_id).toBe(project.init_run_id as string)
    const { port } = new URL(berth.info.base_url)
    const bySlug = await fetch(`http://127.0.0.1:${port}/GREETING`, {
      headers: { host: `hello-world.localhost:${port}` },
    })
    expect(await bySlug.text()).toBe('ahoy')
  })

  test('gives names that are taken a slug with a number', async () => {
    const slugs = []
    for (let time = 0; time < 3; time += 1) {
      slugs.push((await created(berth, serverId, { name: 'Same' })).slug)
    }
    expect(slugs).toEqual(['same', 'same-2', 'same-3'])
  })

  test.each([
    [{ visibility: 'open' }, '"visibility"'],
    [{ lifecycle: 5 }, '"lifecycle"'],
    [{ template: 'no-such-template' }, 'no-such-template'],
    [{ source: { type: 'ftp' } }, '"source'],
    [{ source: { type: 'git', url: 'http://example.com/x.git' } }, 'https'],
    [{ source: { type: 'archive', data: 'AAAA' } }, 'archive'],
    [{ env: { 'NOT GOOD': 'x' } }, 'NOT GOOD'],
    [{ env: { GOOD: 5 } }, '"env.GOOD"'],
    [{ name: '' }, '"name"'],
  ])('refuses %j, naming what is wrong, and makes nothing', async (wishes, named) => {
    const before = (await berth.call('GET', '/projects')).body.projects.length
    const { status, body } = await berth.call('POST', `/servers/${serverId}/projects`, wishes)
    expect(status).toBe(400)
    expect(body).toEqual({ error: 'bad_request', message: expect.stringContaining(named) })
    expect((await berth.call('GET', '/projects')).body.projects.length).toBe(before)
  })

  test('refuses one more than the plan allows', async () => {
    const account = (await berth.control('POST', '/accounts', { plan: { projects: { small: 1 } } })).body
    const authorization = { authorization: `Bearer ${account.api_key}` }
    const server = (await berth.call('POST', '/servers', {}, authorization)).body.id
    expect((await berth.call('POST', `/servers/${server}/projects`, {}, authorization)).status).toBe(201)
    const { status, body } = await berth.call('POST', `/servers/${server}/projects`, {}, authorization)
    expect(status).toBe(403)
    expect(body).toEqual({ error: 'plan_limit', message: expect.stringContaining('1 project') })
  })

  test('refuses a key that reaches only chosen projects', async () => {
    const project = await created(berth, serverId, {})
    const { key } = (await berth.call('POST', '/keys', { label: 'x', allowed_project_ids: [project.id] }))
      .body
    const authorization = { authorization: `Bearer ${key}` }
    const { status, body } = await berth.call('POST', `/servers/${serverId}/projects`, {}, authorization)
    expect([status, body.error]).toEqual([403, 'forbidden'])
    const { projects } = (await berth.call('GET', '/projects', undefined, authorization)).body
    expect(projects.map(({ id }: { id: string }) => id)).toEqual([project.id])
  })
})

describe('GET', () => {
  test('/projects lists those of all servers, newest first; the server its own', async () => {
    const other = await berth.server()
    const first = await created(berth, other, {})
    const second = await created(berth, serverId, {})
    const ids = (projects: { id: string }[]) => projects.map(({ id }) => id)
    const { projects } = (await berth.call('GET', '/projects')).body
    expect(ids(projects).slice(0, 2)).toEqual([second.id, first.id])
    const { projects: ofOther } = (await berth.call('GET', `/servers/${other}/projects`)).body
    expect(ids(ofOther)).toEqual([first.id])
  })
})

describe('visibility', () => {
  test('a private project listens nowhere; slug and URL stay across changes', async () => {
    const project = await ready(berth, serverId, {
      name: 'shy',
      visibility: 'public',
      source: await archiveOf({ 'index.html': '<h1>shy</h1>' }),
    })
    const port = Number(new URL(project.url ?? '').port)
    expect(await (await fetch(project.url ?? '')).text()).toContain('shy')

    const hidden = await berth.call('PATCH', `/projects/${project.id}`, { visibility: 'private' })
    expect(hidden.body).toMatchObject({ url: null, slug: 'shy', runtime_status: 'running' })
    expect(await isListening(port)).toBe(false)

    const seen = await berth.call('PATCH', `/projects/${project.id}`, { visibility: 'public' })
    expect(seen.body).toMatchObject({ url: project.url, slug: 'shy' })
    expect(await (await fetch(project.url ?? '')).text()).toContain('shy')
  })

  test('changes of name and description keep the slug', async () => {
    const { id, slug } = await created(berth, serverId, { name: 'one' })
    const { body } = await berth.call('PATCH', `/projects/${id}`, { name: 'two', description: 'three' })
    expect(body).toMatchObject({ name: 'two', description: 'three', slug })
  })
})

describe('removal', () => {
  test('delete ends the app and removes the files', async () => {
    const project = await ready(berth, serverId, {
      visibility: 'public',
      source: await archiveOf(APP),
    })
    const { body } = await berth.call('DELETE', `/projects/${project.id}`)
    expect(body).toEqual({ id: project.id, deleted: true })
    expect((await berth.call('GET', `/projects/${project.id}`)).status).toBe(404)
    expect(await isListening(Number(new URL(project.url ?? '').port))).toBe(false)
    const { stdout } = await berth.exec(serverId, 'ls projects; ls -l /proc/[0-9]*/cwd')
    expect(stdout).not.toContain(project.slug)
  })

  test('cleanup removes an ephemeral project and refuses a persistent one', async () => {
    const { id } = await created(berth, serverId, {})
    const refused = await berth.call('POST', `/projects/${id}/cleanup`)
    expect([refused.status, refused.body.error]).toEqual([400, 'bad_request'])
    await berth.call('PATCH', `/projects/${id}`, { lifecycle: 'ephemeral' })
    expect((await berth.call('POST', `/projects/${id}/cleanup`)).body).toEqual({ id, cleaned: true })
    expect((await berth.call('GET', `/projects/${id}`)).status).toBe(404)
  })
})

describe('bring-up', () => {
  test('waits for variables that are missing, says which, and goes on when they come', async () => {
    const source = await archiveOf({ ...APP, '.env.example': '# The token\nTOKEN=\nMODE=fast\n' })
    const project = await created(berth, serverId, { visibility: 'public', source })
    expect(await settled(berth, project.id)).toMatchObject({
      init_phase: 'awaiting_secrets',
      runtime_status: 'unbuilt',
    })
    const { events } = (await berth.control('GET', '/events')).body
    expect(events).toContainEqual(
      expect.objectContaining({
        event: 'project.secrets_required',
        data: expect.objectContaining({ project_id: project.id, keys: ['TOKEN'] }),
      }),
    )
    const asked = (await berth.call('GET', `/projects/${project.id}/secrets`)).body
    expect(asked).toEqual({
      project_id: project.id,
      keys: [],
      variables: [
        { name: 'MODE', required: false, description: null, default: 'fast', set_for: null, missing: false },
        {
          name: 'TOKEN',
          required: true,
          description: 'The token',
          default: null,
          set_for: null,
          missing: true,
        },
      ],
    })
    await berth.call('PUT', '/secrets', { server_id: serverId, secrets: { MODE: 'slow' } })
    const set = await berth.call('PUT', `/projects/${project.id}/secrets`, {
      secrets: { TOKEN: 'tok-123456' },
    })
    expect((await berth.call('GET', `/projects/${project.id}/secrets`)).body).toMatchObject({
      keys: ['TOKEN'],
      variables: [
        { name: 'MODE', set_for: 'server', missing: false },
        { name: 'TOKEN', set_for: 'project', missing: false },
      ],
    })
    await berth.call('PUT', '/secrets', { server_id: serverId, secrets: { MODE: null } })
    expect(set).toMatchObject({ status: 200, body: { project_id: project.id, keys: ['TOKEN'] } })
    expect(await settled(berth, project.id)).toMatchObject({ init_phase: 'ready' })
    expect(await (await fetch(`${project.url}TOKEN`)).text()).toBe('tok-123456')
    await until(
      async () => (await logged(berth, project.id)).includes('listening with ***'),
      'the line of the app to be logged',
    )
    expect(await logged(berth, project.id)).not.toContain('tok-123456')
  })

  test('goes on without them when told to', async () => {
    const source = await archiveOf({ ...APP, '.env.example': 'TOKEN=\n' })
    const { id, init_run_id } = await created(berth, serverId, { source })
    await settled(berth, id)
    const { status, body } = await berth.call('POST', `/projects/${id}/init`, { proceed: true })
    expect(status).toBe(202)
    expect(body.init_run_id).toBe(init_run_id)
    expect(await settled(berth, id)).toMatchObject({ init_phase: 'ready' })
  })

  test('a step that fails ends it: the phase and the end of its log are reported', async () => {
    const source = await archiveOf({
      'berth.json': JSON.stringify({ install: 'echo no luck; exit 7', start: 'true' }),
    })
    const { id } = await created(berth, serverId, { source })
    const ended = await settled(berth, id)
    expect(ended).toMatchObject({ init_phase: 'failed', runtime_status: 'unbuilt' })
    const phases = ended.init_phases as { phase: string; began_at: string }[]
    expect(phases.map(({ phase }) => phase)).toEqual(['fetch', 'install', 'failed'])
    expect(phases.map(({ began_at }) => began_at).toSorted()).toEqual(phases.map(({ began_at }) => began_at))
    expect(ended.app).toMatchObject({
      evidence: [{ file: 'berth.json', line: 1, says: expect.stringContaining('no luck') }],
      install: 'echo no luck; exit 7',
      build: null,
    })
    const { events } = (await berth.control('GET', '/events')).body
    const failed = events.find(
      ({ event, data }: { event: string; data: { project_id?: string } }) =>
        event === 'project.init_failed' && data.project_id === id,
    )
    expect(failed.data.init_phase).toBe('install')
    expect(failed.data.log).toContain('no luck')
    expect(failed.data.log).toContain('exit code 7')
  })

  test('an app that ends before it listens fails as it starts, at once, and one that listens at its health check', async () => {
    const failureOf = async (start: string) => {
      const source = await archiveOf({ 'berth.json': JSON.stringify({ start }) })
      const { id } = await created(berth, serverId, { source })
      const begun = performance.now()
      const { init_phases } = await settled(berth, id)
      const { events } = (await berth.control('GET', '/events')).body
      const failed = events.find(
        ({ event, data }: { event: string; data: { project_id?: string } }) =>
          event === 'project.init_failed' && data.project_id === id,
      )
      const phases = (init_phases as { phase: string }[]).map(({ phase }) => phase)
      return { ...failed.data, phases, tookMs: performance.now() - begun }
    }
    const atOnce = await failureOf('echo no luck; exit 7')
    expect(atOnce.phases.slice(-2)).toEqual(['start', 'failed'])
    expect(atOnce.init_phase).toBe('start')
    expect(atOnce.log).toMatch(/no luck\n.*exit code 7/s)
    // The time of a health check is a minute.
    expect(atOnce.tookMs).toBeLessThan(20_000)
    const late = await failureOf('sleep 0.7; exit 8')
    expect([late.phases.at(-2), late.init_phase]).toEqual(['healthcheck', 'start'])
    const heard = await failureOf(
      `exec bun -e 'Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => process.exit(9) })'`,
    )
    expect([heard.phases.at(-2), heard.init_phase]).toEqual(['healthcheck', 'healthcheck'])
    expect(heard.log).toContain('exit code 9')
  })

  test('begins anew, with a run of its own, where the last is over', async () => {
    const { id, init_run_id } = await ready(berth, serverId, { source: await archiveOf(APP) })
    const again = await berth.call('POST', `/projects/${id}/init`)
    expect(again.status).toBe(202)
    expect(again.body.init_run_id).not.toBe(init_run_id)
    expect(await settled(berth, id)).toMatchObject({ init_phase: 'ready', runtime_status: 'running' })
  })

  test('is refused where there is no code, and takes what was written into the folder', async () => {
    const { id, slug } = await created(berth, serverId, { visibility: 'public' })
    const refused = await berth.call('POST', `/projects/${id}/init`)
    expect([refused.status, refused.body.error]).toEqual([400, 'bad_request'])
    expect(refused.body.message).toContain(`projects/${slug}`)
    await berth.call('PUT', `/servers/${serverId}/files`, {
      path: `projects/${slug}/index.html`,
      content: 'written',
    })
    expect((await berth.call('POST', `/projects/${id}/init`)).status).toBe(202)
    const { url } = await settled(berth, id)
    expect(await (await fetch(url ?? '')).text()).toBe('written')
  })

  test('fails when its server is stopped, and can be begun again', async () => {
    const other = await berth.server()
    const source = await archiveOf({
      'berth.json': JSON.stringify({ install: 'touch begun; [ -e go ] || sleep 60' }),
      'index.html': 'x',
    })
    const { id, slug } = await created(berth, other, { source })
    await until(
      async () => (await berth.exec(other, `ls projects/${slug}/begun`)).exitCode === 0,
      'the installation to have begun',
    )
    await berth.call('POST', `/servers/${other}/actions`, { action: 'stop' })
    expect(await settled(berth, id)).toMatchObject({ init_phase: 'failed' })
    await berth.call('PUT', `/servers/${other}/files`, { path: `projects/${slug}/go`, content: '' })
    await berth.call('POST', `/projects/${id}/init`)
    expect(await settled(berth, id)).toMatchObject({ init_phase: 'ready' })
  })
})

describe('apps', () => {
  test('rest with their server and run again with it', async () => {
    const other = await berth.server()
    const project = await ready(berth, other, { visibility: 'public', source: await archiveOf(APP) })
    await berth.call('POST', `/servers/${other}/actions`, { action: 'stop' })
    expect(await shown(berth, project.id)).toMatchObject({ runtime_status: 'paused', init_phase: 'ready' })
    const asleep = await fetch(project.url ?? '')
    expect(asleep.status).toBe(503)
    expect(await asleep.json()).toMatchObject({ error: 'service_unavailable' })
    await berth.call('POST', `/servers/${other}/actions`, { action: 'start' })
    expect(await (await fetch(`${project.url}HOST`)).text()).toBe('127.0.0.1')
    await until(
      async () => (await shown(berth, project.id)).runtime_status === 'running',
      'the project to run again',
    )
  })

  test('are started again when they crash, and callers wait', async () => {
    const project = await ready(berth, serverId, { visibility: 'public', source: await archiveOf(APP) })
    await fetch(`${project.url}exit`)
    await until(
      async () => (await logged(berth, project.id)).match(/listening with/g)?.length === 2,
      'the app to have been started again',
    )
    expect((await fetch(project.url ?? '')).status).toBe(200)
  })

  test('get changed variables by a restart', async () => {
    const other = await berth.server()
    const project = await ready(berth, other, { visibility: 'public', source: await archiveOf(APP) })
    const answer = async (name: string) => (await fetch(`${project.url}${name}`)).text()
    await berth.call('PUT', '/secrets', { server_id: other, secrets: { WIDE: 'server', BOTH: 'server' } })
    await until(async () => (await answer('WIDE')) === 'server', 'the server-wide variable to arrive')
    await berth.call('PUT', `/projects/${project.id}/secrets`, { secrets: { BOTH: 'project' } })
    await until(async () => (await answer('BOTH')) === 'project', "the project's own to win")
    await berth.call('PUT', `/projects/${project.id}/secrets`, { secrets: { BOTH: null } })
    await until(async () => (await answer('BOTH')) === 'server', "the server's to come back")
    expect((await berth.exec(other, 'echo $WIDE')).stdout).toBe('server\n')
  })
})
