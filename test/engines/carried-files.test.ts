import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '../../package.json'
import type { KeyedInfo } from '../support/berth.ts'
import { EngineRig, missingForEngine } from '../support/engines/engine-rig.ts'
import { until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'

const missing = missingForEngine('docker')
if (missing !== null) console.error(`SKIP the state of servers on an engine: ${missing}`)

describe.skipIf(missing !== null)('the state of an instance whose servers are on an engine', () => {
  const directory = mkdtempSync(join(tmpdir(), 'berth-carried-'))
  let rig: EngineRig
  let started: ServeProcess[] = []

  beforeAll(async () => {
    rig = await EngineRig.start('docker')
    await rig.prepare()
  }, 300_000)
  afterAll(async () => {
    await rig[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  }, 60_000)

  /** Starts an instance on a data directory, with its servers on the engine or on this machine. */
  async function instance(
    name: string,
    compute: 'docker' | 'local',
    more: string[] = [],
  ): Promise<KeyedInfo> {
    const engine = compute === 'docker' ? ['--engine', `unix://${rig.socket}`] : []
    const args = ['--port', '0', '--data', join(directory, name), '--compute', compute, ...engine, ...more]
    const berth = serve(args)
    started.push(berth)
    return await berth.ready
  }

  async function stop(): Promise<void> {
    for (const { child } of started) child.kill('SIGTERM')
    await Promise.all(started.map(({ child }) => child.exited))
    started = []
  }

  const control = async (info: KeyedInfo, method: string, path: string, body?: object) => {
    const response = await fetch(`${info.base_url}/_berth${path}`, {
      method,
      headers: { authorization: `Bearer ${info.admin_token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
    return { status: response.status, body: (await response.json()) as any }
  }

  const exec = async (info: KeyedInfo, id: string, command: string): Promise<string> =>
    (await call(info, 'POST', `/servers/${id}/exec`, { command })).body.stdout

  const LOOK = 'cat a; stat -c "%a %h" a; readlink d/link; test -e later && echo later; true'

  /** Resolves when the engine has as many volumes of servers, each with its caches. */
  const hasStorages = (count: number): Promise<void> =>
    until(
      async () => (await rig.volumes()).filter((name) => name.endsWith('-caches')).length === count,
      `${count} volumes of servers`,
    )

  test('is saved, compared, restored and reset with the files of servers, and leaves no volume', async () => {
    const info = await instance('one', 'docker')
    const id = (await call(info, 'POST', '/servers')).body.id
    await exec(info, id, 'echo one > a; chmod 700 a; ln a hard; mkdir d; ln -s ../a d/link')
    const asleep = (await call(info, 'POST', '/servers')).body.id
    await exec(info, asleep, 'echo asleep > a')
    await call(info, 'POST', `/servers/${asleep}/actions`, { action: 'stop' })
    expect((await control(info, 'POST', '/snapshots', { name: 'before' })).status).toBe(201)

    await exec(info, id, 'echo two >> a; touch later')
    const other = (await call(info, 'POST', '/servers')).body.id
    const { files } = (await control(info, 'GET', '/snapshots/before/diff')).body
    expect(files).toEqual([
      expect.objectContaining({
        server_id: id,
        files: [
          { change: 'changed', path: 'a' },
          { change: 'changed', path: 'hard' },
          { change: 'added', path: 'later' },
        ],
      }),
    ])
    await hasStorages(3)

    expect((await control(info, 'POST', '/snapshots/before/restore')).status).toBe(200)
    expect(await exec(info, id, LOOK)).toBe('one\n700 2\n../a\n')
    expect((await call(info, 'GET', `/servers/${asleep}/files?path=a`)).body.content).toBe('asleep\n')
    expect((await call(info, 'GET', `/servers/${other}`)).status).toBe(404)
    await hasStorages(2)

    expect((await control(info, 'POST', '/reset')).status).toBe(200)
    await hasStorages(0)
    await stop()
  }, 120_000)

  test('is not saved if the files of a server cannot be had, and the refusal names it', async () => {
    const info = await instance('lost', 'docker')
    const id = (await call(info, 'POST', '/servers')).body.id
    await exec(info, id, 'echo one > a')
    await call(info, 'POST', `/servers/${id}/actions`, { action: 'stop' })
    const volumes = (await rig.volumes()).filter((name) => name.includes(id.slice(4, 20).toLowerCase()))
    for (const name of volumes) await rig.client().send('DELETE', `/volumes/${name}`)
    const { status, body } = await control(info, 'POST', '/snapshots', { name: 'none' })
    expect(status).toBe(502)
    expect(body.message).toContain("The server's files are gone")
    expect((await control(info, 'GET', '/snapshots')).body.snapshots).toEqual([])
    expect(readdirSync(join(directory, 'lost')).includes('swap')).toBe(false)
    await stop()
  }, 60_000)

  test('moves between this machine and an engine as a snapshot', async () => {
    const here = await instance('here', 'local')
    const id = (await call(here, 'POST', '/servers')).body.id
    await exec(here, id, 'echo one > a; chmod 700 a; ln a hard; mkdir d; ln -s ../a d/link')
    await control(here, 'POST', '/snapshots', { name: 'moved' })
    const from = (name: string): string[] => ['--snapshot', join(directory, name, 'snapshots/moved')]

    const there = await instance('there', 'docker', from('here'))
    expect((await call(there, 'GET', `/servers/${id}/compute`)).body).toMatchObject({
      compute: 'docker',
      state: 'running',
      cause: null,
    })
    expect(await exec(there, id, LOOK)).toBe('one\n700 2\n../a\n')
    await exec(there, id, 'echo two >> a; touch later')
    await control(there, 'POST', '/snapshots', { name: 'moved' })

    const back = await instance('back', 'local', from('there'))
    expect(await exec(back, id, LOOK)).toBe('one\ntwo\n700 2\n../a\nlater\n')
    expect((await call(back, 'GET', `/servers/${id}/compute`)).body.compute).toBe('local')
    await stop()
  }, 120_000)

  test('fixtures choose the image of a server, which never changes', async () => {
    const path = join(directory, 'image.json')
    const image = `berth-server:${version}`
    writeFileSync(path, JSON.stringify({ servers: { api: { image } } }))
    const permitted = ['--fixtures', path, '--server-images', 'berth-server:*']
    const first = await instance('image', 'docker', permitted)
    const [{ id }] = (await call(first, 'GET', '/servers')).body.servers
    expect((await call(first, 'GET', `/servers/${id}/compute`)).body.image).toBe(image)
    await stop()
    writeFileSync(path, JSON.stringify({ servers: { api: { image: 'other:1' } } }))
    const args = [
      '--port',
      '0',
      '--data',
      join(directory, 'image'),
      '--fixtures',
      path,
      '--compute',
      'docker',
    ]
    const second = serve([...args, '--engine', `unix://${rig.socket}`, '--server-images', 'other:*'])
    expect(await second.child.exited).toBe(1)
    expect(await second.stderr).toContain(`has the image ${image}, which never changes`)
  }, 60_000)
})
