import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeyedInfo } from '../support/berth.ts'
import { isLocalCompute, serversWithFiles } from '../support/compute.ts'
import { until } from '../support/processes.ts'
import { call, serve } from '../support/serve.ts'

const control = (info: KeyedInfo, method: string, path: string, body?: object) =>
  call({ ...info, api_key: info.admin_token }, method, `/_berth${path}`, body)

const folder = mkdtempSync(join(tmpdir(), 'berth-disk-'))
const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder]).exitCode === 0
const filler = join(folder, 'filler')

/** Takes the room that the disk has left. */
const fill = () => Bun.spawnSync(['sh', '-c', `head -c 50000000 /dev/zero >> ${filler} 2>/dev/null`])

const reason = mounted ? '' : ' (skipped: this user may not mount a small file system)'

beforeAll(() => {
  if (!mounted) console.error(`SKIP: full disk${reason}`)
})
afterAll(() => {
  if (mounted) Bun.spawnSync(['umount', folder])
  rmSync(folder, { recursive: true, force: true })
})

test.skipIf(!mounted)(
  `a full disk is reported, changes nothing, is over when there is room, and does not disturb the stop${reason}`,
  async () => {
    const { child, ready } = serve(['--port', '0', '--data', join(folder, 'data'), '--spare-servers', '0'])
    try {
      const info = await ready
      const { body: server } = await call(info, 'POST', '/servers')
      fill()

      const write = await call(info, 'PUT', `/servers/${server.id}/files`, {
        path: 'a',
        content: 'x'.repeat(100_000),
      })
      // Elsewhere the file has room.
      if (isLocalCompute) {
        expect(write).toMatchObject({ status: 500, body: { error: 'internal_error' } })
        expect(write.body.message).toContain('disk')
      } else expect(write.status).toBe(201)
      // SQLite has room in its pages for a while; provisioning ends in a refusal and leaves nothing half made.
      let refused = await call(info, 'POST', '/servers')
      for (let n = 0; n < 200 && refused.status === 201; n++) refused = await call(info, 'POST', '/servers')
      expect(refused.status).toBe(500)
      expect(refused.body.message).toContain('disk')
      const present = (await call(info, 'GET', '/servers')).body.servers.length
      expect((await serversWithFiles(join(folder, 'data'))).length).toBe(present)

      // What is only read needs no room, even when use is due to be charged, and a deletion makes some.
      fill()
      await control(info, 'POST', '/clock', { advance: '1m' })
      for (const path of ['/servers', `/servers/${server.id}`, '/usage', '/tasks'])
        expect(await call(info, 'GET', path)).toMatchObject({ status: 200 })
      const { servers } = (await call(info, 'GET', '/servers')).body
      const other = servers.find(({ id }: { id: string }) => id !== server.id)
      if (other) expect(await call(info, 'DELETE', `/servers/${other.id}`)).toMatchObject({ status: 200 })

      rmSync(filler)
      expect((await call(info, 'POST', '/servers')).status).toBe(201)
      expect(
        (await call(info, 'PUT', `/servers/${server.id}/files`, { path: 'a', content: 'x' })).status,
      ).toBe(201)
      fill()
    } finally {
      child.kill('SIGTERM')
      expect(await child.exited).toBe(0)
    }
  },
)

test.skipIf(!mounted)(
  `files on another disk than the database are written while that is full, and measured when there is room${reason}`,
  async () => {
    const data = join(folder, 'apart')
    const servers = join(data, 'servers')
    rmSync(filler, { force: true })
    mkdirSync(servers, { recursive: true, mode: 0o700 })
    if (isLocalCompute) Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', servers])
    const { child, ready } = serve(['--port', '0', '--data', data])
    try {
      const info = await ready
      const { id } = (await call(info, 'POST', '/servers')).body
      const write = async (content: string) =>
        (await call(info, 'PUT', `/servers/${id}/files`, { path: 'a', content })).status
      const read = async () => (await call(info, 'GET', `/servers/${id}/files?path=a`)).body.content
      expect(await write('x')).toBe(201)
      fill()
      const refused = { status: 500, body: { message: expect.stringContaining('disk') } }
      const untilRefused = async (path: string, body: object) => {
        let response = await call(info, 'POST', path, body)
        for (let n = 0; n < 2_000 && response.status < 300; n++)
          response = await call(info, 'POST', path, body)
        expect(response).toMatchObject(refused)
      }
      await untilRefused('/keys', { label: 'more' })

      for (const content of ['y'.repeat(2_000_000), 'z'.repeat(3_000_000)]) {
        expect(await write(content)).toBe(201)
        expect(await read()).toBe(content)
      }
      // After a command, a write measures first.
      expect(await call(info, 'POST', `/servers/${id}/exec`, { command: 'cp a b' })).toMatchObject({
        status: 200,
      })
      expect(await write('small')).toBe(201)
      expect(await read()).toBe('small')
      expect(await call(info, 'DELETE', `/servers/${id}/files?path=a`)).toMatchObject({ status: 200 })
      expect(await read()).toBeUndefined()

      // A command that cannot be recorded ends.
      await untilRefused('/keys', { label: 'more' })
      expect(
        await call(info, 'POST', `/servers/${id}/exec`, { command: 'sleep 299', detach: true }),
      ).toMatchObject(refused)
      const hasSleep = async () =>
        JSON.stringify((await call(info, 'GET', `/servers/${id}/processes`)).body).includes('sleep 299')
      await until(async () => !(await hasSleep()), 'the command to end')

      rmSync(filler)
      await until(
        async () => (await call(info, 'GET', `/servers/${id}`)).body.server.storageUsedGb >= 0.003,
        'the files to be measured',
      )
    } finally {
      child.kill('SIGTERM')
      const exitCode = await child.exited
      if (isLocalCompute) Bun.spawnSync(['umount', servers])
      rmSync(data, { recursive: true })
      expect(exitCode).toBe(0)
    }
  },
)

test.skipIf(!mounted)(
  `a server is stopped on a full disk, with all that runs on it, and recorded when there is room${reason}`,
  async () => {
    const data = join(folder, 'stopped')
    rmSync(filler, { force: true })
    let { child, ready } = serve(['--port', '0', '--data', data, '--spare-servers', '0'])
    try {
      let info = await ready
      const ids: string[] = []
      for (let n = 0; n < 5; n += 1) ids.push((await call(info, 'POST', '/servers')).body.id)
      const [one = '', other = '', third = '', fourth = '', writing = ''] = ids
      const act = (id: string, action: string) => call(info, 'POST', `/servers/${id}/actions`, { action })
      const status = async (id: string) => (await call(info, 'GET', `/servers/${id}`)).body.server.status
      for (const id of ids)
        await call(info, 'PUT', `/servers/${id}/files`, { path: 'index.html', content: 'a' })
      const { url } = (await call(info, 'POST', `/servers/${one}/deployments`)).body
      const { body: project } = await call(info, 'POST', `/servers/${one}/projects`, {
        source: { type: 'template', template: 'static-site' },
      })
      const shownProject = async () => (await call(info, 'GET', `/projects/${project.id}`)).body
      await until(
        async () => (await shownProject()).runtime_status === 'running',
        'the project to run',
        60_000,
      )
      const { task_id: task } = (await call(info, 'POST', `/servers/${one}/tasks`, { goal: 'ask: Which?' }))
        .body
      const shownTask = async () =>
        (await call(info, 'GET', `/servers/${one}/tasks/${task}`)).body.task.status
      await until(async () => (await shownTask()) === 'awaiting_input', 'the question')
      await call(info, 'POST', `/servers/${one}/exec`, { command: 'sleep 298 >/dev/null 2>&1 &' })

      const isFull = { status: 500, body: { message: expect.stringContaining('disk') } }
      /** Takes the room that SQLite has left in its pages and in its log too: a transaction may use both. */
      const fillDatabase = async () => {
        fill()
        let refused = await call(info, 'POST', `/servers/${writing}/tasks`, { goal: 'complete: More.' })
        for (let n = 0; n < 2_000 && refused.status < 300; n++)
          refused = await call(info, 'POST', `/servers/${writing}/tasks`, { goal: 'complete: More.' })
        expect(refused).toMatchObject(isFull)
      }
      await fillDatabase()
      expect(await act(one, 'stop')).toMatchObject({ status: 200, body: { id: one, status: 'sleeping' } })
      expect(await act(one, 'stop')).toMatchObject({ status: 200, body: { id: one, status: 'sleeping' } })
      expect(await status(one)).toBe('sleeping')
      const { servers } = (await call(info, 'GET', '/servers')).body
      expect(servers.find(({ id }: { id: string }) => id === one).status).toBe('sleeping')
      if (isLocalCompute) expect(Bun.spawnSync(['pgrep', '-f', '^sleep 298']).exitCode).toBe(1)
      await control(info, 'POST', `/servers/${other}/fault`, { kind: 'crash' })
      await until(async () => (await status(other)) === 'sleeping', 'the end of the sandbox')
      expect(await status(third)).toBe('running')

      rmSync(filler)
      await until(async () => (await shownTask()) === 'failed', 'the end of the task to be recorded')
      await until(
        async () => (await shownProject()).runtime_status === 'paused',
        'the project to be recorded',
      )
      const told = async () =>
        (await control(info, 'GET', '/events?limit=1000')).body.events.filter(
          ({ event }: { event: string }) => event === 'server.stopped',
        )
      await until(async () => (await told()).length === 2, 'the events')
      expect(await act(one, 'start')).toMatchObject({ status: 200, body: { status: 'running' } })
      await until(async () => (await fetch(url)).ok, 'the page to be back')

      // What could not be written until the end of berth is, where there is room by then.
      await fillDatabase()
      expect((await act(fourth, 'stop')).body).toEqual({ id: fourth, status: 'sleeping' })
      // What is refused changes nothing.
      const [start, publish, removal] = [
        await act(fourth, 'start'),
        await call(info, 'POST', `/servers/${third}/deployments`),
        await call(info, 'DELETE', `/servers/${third}`),
      ]
      for (const response of [start, publish, removal])
        if (response.status >= 300) expect(response).toMatchObject(isFull)
      if (start.status === 200) await act(fourth, 'stop')
      expect(await status(fourth)).toBe('sleeping')
      if (removal.status !== 200) expect(await status(third)).toBe('running')
      expect((await fetch(url)).ok).toBe(true)
      rmSync(filler)
      child.kill('SIGTERM')
      expect(await child.exited).toBe(0)
      ;({ child, ready } = serve(['--port', '0', '--data', data, '--spare-servers', '0']))
      info = await ready
      await until(async () => (await status(one)) === 'running', 'the server that ran')
      expect(await status(fourth)).toBe('sleeping')
    } finally {
      child.kill('SIGTERM')
      await child.exited
      rmSync(data, { recursive: true, force: true })
      rmSync(filler, { force: true })
    }
  },
  120_000,
)

test.skipIf(!mounted)(
  `a start on a full disk says so in one sentence, and how to make room${reason}`,
  async () => {
    fill()
    truncateSync(filler, statSync(filler).size - 16_384)
    const { child, ready } = serve(['--port', '0', '--data', join(folder, 'fresh')])
    await expect(ready).rejects.toThrow(/^berth: The disk that holds the data directory \S+ is full\. .*\n$/)
    expect(await child.exited).toBe(1)
    rmSync(filler)
  },
)
