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
