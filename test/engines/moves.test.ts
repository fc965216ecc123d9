import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeyedInfo } from '../support/berth.ts'
import { EngineRig, missingForEngine } from '../support/engines/engine-rig.ts'
import { until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

const missing = missingForEngine('docker')
if (missing !== null) console.error(`SKIP moves of servers: ${missing}`)

describe.skipIf(missing !== null)('a server that is moved between this machine and an engine', () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-moves-'))
  let rig: EngineRig
  let running: ServeProcess | null = null

  beforeAll(async () => {
    rig = await EngineRig.start('docker')
    await rig.prepare()
  }, 300_000)
  afterAll(async () => {
    await end('SIGTERM')
    await rig[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  }, 60_000)

  async function instance(name: string, compute: 'docker' | 'local'): Promise<KeyedInfo> {
    await end('SIGTERM')
    const options = ['--compute', compute, '--engine', `unix://${rig.socket}`]
    running = serve(['--port', '0', '--data', join(directory, name), ...options])
    return await running.ready
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    running?.child.kill(signal)
    await running?.child.exited
    running = null
  }

  async function control(
    info: KeyedInfo,
    method: string,
    path: string,
    body?: object | Uint8Array<ArrayBuffer>,
  ) {
    const response = await fetch(`${info.base_url}/_berth${path}`, {
      method,
      headers: { authorization: `Bearer ${info.admin_token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
    return { status: response.status, body: (await response.json()) as any }
  }
  const exec = async (info: KeyedInfo, id: string, command: string): Promise<string> =>
    (await call(info, 'POST', `/servers/${id}/exec`, { command })).body.stdout
  const volumes = async (): Promise<string[]> =>
    (await rig.volumes()).filter((name) => name.startsWith('berth-') && name.endsWith('-caches'))
  const MAKE = 'mkdir -p "e d" d; echo one >"a b"; chmod 750 "a b"; ln "a b" h; ln -s "../a b" d/l; echo ü >ñ'
  const LOOK =
    'find . -path ./projects -prune -o -type f -printf "%P %m %n\\n" | LC_ALL=C sort; cat "a b" d/l ñ; find . -type l -printf "%P %l\\n"; ls -d "e d"'

  test('has the same files, and its project comes up again; nothing is left where it was', async () => {
    const here = await instance('data', 'local')
    const id = (await call(here, 'POST', '/servers')).body.id
    await exec(here, id, MAKE)
    const files = await exec(here, id, LOOK)
    const made = await call(here, 'POST', `/servers/${id}/projects`, {
      name: 'site',
      template: 'static-site',
      visibility: 'public',
    })
    const project = made.body.id
    const ready = (info: KeyedInfo) => control(info, 'GET', `/wait?project=${project}&until=ready`)
    expect((await ready(here)).status).toBe(200)

    const there = await instance('data', 'docker')
    const refusal = await call(there, 'POST', `/servers/${id}/exec`, { command: 'true' })
    expect([refusal.status, refusal.body.message]).toEqual([
      502,
      expect.stringContaining(`berth servers move ${id} --to docker`),
    ])
    expect((await call(there, 'GET', `/servers/${id}/compute`)).body).toMatchObject({
      ...{ compute: 'local', state: 'unreachable', cause: expect.stringContaining('servers move') },
    })
    expect(
      (await control(there, 'POST', `/servers/${id}/move`, { to: 'kubernetes' })).body.message,
    ).toContain('One of the two places')
    expect(await control(there, 'POST', `/servers/${id}/move`, { to: 'docker' })).toMatchObject({
      status: 200,
      body: { id, from: 'local', to: 'docker', removed: true },
    })
    expect(existsSync(join(directory, 'data/servers', id))).toBe(false)
    expect(await exec(there, id, LOOK)).toBe(files)
    expect((await ready(there)).status).toBe(200)
    expect((await call(there, 'GET', `/servers/${id}/projects`)).body.projects).toMatchObject([
      { id: project, runtime_status: 'running' },
    ])
    expect((await control(there, 'POST', `/servers/${id}/move`, { to: 'docker' })).body.message).toContain(
      'already',
    )

    // And back, from what the berth runs servers on: it runs when berth is started there.
    const back = await control(there, 'POST', `/servers/${id}/move`, { to: 'local' })
    expect(back).toMatchObject({ status: 200, body: { from: 'docker', to: 'local', removed: true } })
    expect(await volumes()).toEqual([])
    const again = await instance('data', 'local')
    expect(await exec(again, id, LOOK)).toBe(files)
    expect((await ready(again)).status).toBe(200)
    await call(again, 'DELETE', `/servers/${id}`)
    await end('SIGTERM')
  }, 240_000)

  test('is whole at one of both places whenever berth is killed, and nothing else is left', async () => {
    const here = await instance('killed', 'local')
    const id = (await call(here, 'POST', '/servers')).body.id
    await exec(here, id, `${MAKE}; head -c 60000000 /dev/urandom >big; sha256sum big >sum`)
    const files = await exec(here, id, LOOK)
    let compute: 'local' | 'docker' = 'local'
    for (const delay of [150, 500, 900, 1300, 1700, 2100]) {
      // From where it is to the other place.
      const to = compute === 'local' ? 'docker' : 'local'
      const info = await instance('killed', delay % 4 === 0 ? compute : to)
      void control(info, 'POST', `/servers/${id}/move`, { to }).catch(() => {})
      await Bun.sleep(delay)
      await end('SIGKILL')
      // The place of the target is cleaned by a berth that runs there, the other one by one that runs here.
      for (const kind of ['docker', 'local'] as const) {
        const looking = await instance('killed', kind)
        const place = (await call(looking, 'GET', `/servers/${id}/compute`)).body
        compute = place.compute
        if (compute !== kind) continue
        expect([delay, await exec(looking, id, `sha256sum -c sum`)]).toEqual([delay, 'big: OK\n'])
        expect(await exec(looking, id, LOOK)).toBe(files)
      }
      await instance('killed', 'docker')
      await until(
        async () => (await volumes()).length === (compute === 'docker' ? 1 : 0),
        `the volumes after ${delay} ms`,
      )
      await instance('killed', 'local')
      await until(
        () => existsSync(join(directory, 'killed/servers', id)) === (compute === 'local'),
        `the directory after ${delay} ms`,
      )
    }
  }, 500_000)

  test('is given new files once its own are lost, from an export or none, and never before', async () => {
    const info = await instance('lost', 'docker')
    const id = (await call(info, 'POST', '/servers')).body.id
    await exec(info, id, MAKE)
    const files = await exec(info, id, LOOK)
    const headers = { authorization: `Bearer ${info.admin_token}` }
    const exported = await fetch(`${info.base_url}/_berth/servers/${id}/export`, { headers })
    const archive = new Uint8Array(await exported.arrayBuffer())
    expect((await control(info, 'POST', `/servers/${id}/recover`)).body.message).toContain(
      'nothing to recover',
    )
    await call(info, 'POST', `/servers/${id}/actions`, { action: 'stop' })
    expect((await control(info, 'POST', `/servers/${id}/recover`)).body.message).toContain(
      'nothing to recover',
    )

    const remove = async (): Promise<void> => {
      await call(info, 'POST', `/servers/${id}/actions`, { action: 'stop' })
      const mine = (await rig.volumes()).filter((name) => name.startsWith('berth-'))
      await until(async () => {
        // One runs for files alone for a minute.
        const containers = (await rig.client().json('GET', '/containers/json', { query: { all: '1' } })) as {
          Id: string
        }[]
        for (const { Id } of containers)
          await rig
            .client()
            .send('DELETE', `/containers/${Id}`, { query: { force: '1' } })
            .catch(() => {})
        for (const name of mine)
          await rig
            .client()
            .send('DELETE', `/volumes/${name}`)
            .catch(() => {})
        return (await volumes()).length === 0
      }, 'the volumes removed by hand')
    }
    await remove()
    const other = await control(info, 'POST', `/servers/${id}/recover`, archive.slice(0, 4000))
    expect([other.status, await volumes()]).toEqual([400, []])
    const filled = await control(info, 'POST', `/servers/${id}/recover`, archive)
    expect(filled).toMatchObject({
      status: 200,
      body: {
        id,
        lost: expect.stringMatching(/after its export at 2/),
        cause: expect.stringContaining('no volume'),
      },
    })
    expect(await exec(info, id, LOOK)).toBe(files)
    await remove()
    const empty = await control(info, 'POST', `/servers/${id}/recover`)
    expect(empty.body).toMatchObject({ lost: `All files of ${id} are lost.`, files: 0 })
    expect(await exec(info, id, 'ls -A')).toBe('')
    await call(info, 'DELETE', `/servers/${id}`)
    expect(await volumes()).toEqual([])
    await end('SIGTERM')
  }, 120_000)

  test('is not taken for lost because its engine is away or is another one, unless a person says so', async () => {
    const there = await instance('away', 'docker')
    const [kept, given] = await Promise.all(
      [1, 2].map(async () => (await call(there, 'POST', '/servers')).body.id),
    )
    await exec(there, kept, MAKE)
    const files = await exec(there, kept, LOOK)
    const recover = async (info: KeyedInfo, id: string, query = '') => {
      const { status, body } = await control(info, 'POST', `/servers/${id}/recover${query}`)
      return [status, body.message ?? body.cause]
    }

    const here = await instance('away', 'local')
    await rig.endDaemon('SIGTERM')
    const away = expect.stringContaining(`unix://${rig.socket}`)
    expect(await recover(here, kept)).toEqual([400, away])
    expect((await recover(here, kept))[1]).toContain(`berth servers recover ${kept} --gone`)
    expect(await recover(here, given, '?gone=true')).toEqual([200, away])
    expect(await exec(here, given, 'ls -A')).toBe('')
    await rig.startDaemon('other')
    expect(await recover(here, kept)).toEqual([400, expect.stringContaining('on another engine')])
    await rig.endDaemon('SIGTERM')
    await rig.startDaemon()
    expect(await recover(here, kept)).toEqual([400, expect.stringContaining('--to local')])

    const again = await instance('away', 'docker')
    expect(await exec(again, kept, LOOK)).toBe(files)
    await end('SIGTERM')
  }, 240_000)
})
