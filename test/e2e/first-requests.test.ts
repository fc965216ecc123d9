import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeyedInfo } from '../support/berth.ts'
import { isLocalCompute, MOST_SERVERS } from '../support/compute.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/processes.ts'
import { call, serve } from '../support/serve.ts'

const KEY = `sk_live_${'K'.repeat(43)}`

/** Servers that are there before. */
const PRESENT = 3

/** Clients that poll the port of a berth that is about to start. */
const CLIENTS = Math.min(10, MOST_SERVERS - PRESENT)

/** Starts that these clients meet. */
const STARTS = 4

interface Created {
  status: number
  body: { id: string; message?: string }
}

/** Creates a server as soon as something listens at the port. */
async function createOnceUp(port: number, pauseMs: number): Promise<Created> {
  for (;;) {
    try {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const response = await fetch(`http://127.0.0.1:${port}/servers`, {
        method: 'POST',
        headers,
        body: '{}',
      })
      return { status: response.status, body: (await response.json()) as Created['body'] }
    } catch {
      await Bun.sleep(pauseMs)
    }
  }
}

test('creates every server that clients ask for over a restart, with a workspace that stays', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-first-'))
  const port = freePort()
  const args = ['--port', String(port), '--data', dataDir, '--api-key', KEY]
  let berth = serve(args)
  try {
    let info = await berth.ready
    for (let n = 0; n < PRESENT; n += 1) await call(info, 'POST', '/servers', {})
    for (let start = 0; start < STARTS; start += 1) {
      berth.child.kill(start % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
      await berth.child.exited
      const creating = Array.from({ length: CLIENTS }, (_, n) => createOnceUp(port, n * 3))
      berth = serve(args)
      info = await berth.ready
      const created = await Promise.all(creating)
      expect(created.filter(({ status }) => status !== 201)).toEqual([])
      expect(info.kept).toEqual([])
      for (const { body } of created) {
        const command = 'echo precious > file && cat file'
        const ran = await call(info, 'POST', `/servers/${body.id}/exec`, { command })
        expect(ran.body).toMatchObject({ exitCode: 0, stdout: 'precious\n' })
        if (isLocalCompute) expect(existsSync(join(dataDir, 'servers', body.id, 'workspace/file'))).toBe(true)
        await call(info, 'DELETE', `/servers/${body.id}`)
      }
    }
  } finally {
    berth.child.kill('SIGTERM')
    await berth.child.exited
    rmSync(dataDir, { recursive: true, force: true })
  }
}, 300_000)

/** What a client may ask first of a berth that was killed, and what shows afterwards that it is there. */
const FIRST: Record<
  string,
  {
    ask: (info: KeyedInfo, server: string) => Promise<{ status: number; body: unknown }>
    status: number
    remains: (info: KeyedInfo, server: string) => Promise<boolean>
  }
> = {
  'a snapshot': {
    ask: (info) => control(info, 'POST', '/snapshots', { name: 'first' }),
    status: 201,
    remains: async ({ data_dir }) => existsSync(join(data_dir, 'snapshots/first/snapshot.json')),
  },
  'a restore': {
    ask: (info) => control(info, 'POST', '/snapshots/base/restore'),
    status: 200,
    remains: (info, server) => hasFile(info, server, 'kept'),
  },
  'a file': {
    ask: (info, server) => call(info, 'PUT', `/servers/${server}/files`, { path: 'new', content: 'new' }),
    status: 201,
    remains: (info, server) => hasFile(info, server, 'new'),
  },
  'a project': {
    ask: (info, server) =>
      call(info, 'POST', `/servers/${server}/projects`, { name: 'first', template: 'static-site' }),
    status: 201,
    remains: async (info, server) => {
      const { body } = await call(info, 'GET', `/servers/${server}/projects`)
      const { id } = body.projects[0]
      await control(info, 'GET', `/wait?project=${id}&until=ready,failed&timeout_ms=30000`)
      // Lines of a log are written together, a moment after they came.
      await until(() => existsSync(join(info.data_dir, 'logs', id)), 'its log is written')
      return true
    },
  },
}

async function hasFile(info: KeyedInfo, server: string, path: string): Promise<boolean> {
  return (await call(info, 'GET', `/servers/${server}/files?path=${path}`)).status === 200
}

function control(info: KeyedInfo, method: string, path: string, body?: object) {
  return call({ ...info, api_key: info.admin_token }, method, `/_berth${path}`, body)
}

test.each(Object.entries(FIRST))(
  'does %s that is asked for first after a kill, beside what the kill left',
  async (_, { ask, status, remains }) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-first-'))
    const args = ['--port', '0', '--data', dataDir]
    let berth = serve(args)
    try {
      let info = await berth.ready
      const server = (await call(info, 'POST', '/servers', {})).body.id
      await call(info, 'PUT', `/servers/${server}/files`, { path: 'kept', content: 'kept' })
      await control(info, 'POST', '/snapshots', { name: 'base' })
      berth.child.kill('SIGKILL')
      await berth.child.exited
      // What a kill amid each of them leaves.
      mkdirSync(join(dataDir, 'snapshots/.new-first/servers'), { recursive: true })
      mkdirSync(join(dataDir, 'servers/.new-srv_half'), { recursive: true })
      mkdirSync(join(dataDir, 'logs/prj_gone'), { recursive: true })
      writeFileSync(join(dataDir, 'logs/prj_gone/log'), '')
      berth = serve(args)
      info = await berth.ready
      expect(await ask(info, server)).toMatchObject({ status })
      await control(info, 'GET', '/ready')
      expect(await remains(info, server)).toBe(true)
      expect(existsSync(join(dataDir, 'snapshots/.new-first'))).toBe(false)
    } finally {
      berth.child.kill('SIGTERM')
      await berth.child.exited
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
  60_000,
)
