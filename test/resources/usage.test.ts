import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ISOLATIONS } from '../../src/config/config.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'

setDefaultTimeout(30_000)

const usageOf = async (berth: TestBerth, serverId: string) =>
  (await berth.call('GET', `/servers/${serverId}/usage`)).body.usage

/** Takes 60 MB and a processor, and listens on a port. */
const BUSY = `
const taken = new Uint8Array(6e7).fill(1)
Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(String(taken.length)) })
setInterval(() => { for (const end = performance.now() + 90; performance.now() < end; ); }, 100)
`

test.each([...ISOLATIONS])(
  '%s measures processors, memory, storage, processes and ports',
  async (isolation) => {
    const started = await testBerth({ flags: { isolation } }).catch((error) => {
      console.error(`SKIP usage under ${isolation}: ${String(error).split('\n')[0]}`)
      return null
    })
    if (started === null) return
    await using berth = started
    const server = await berth.server({ tier: 'medium' })
    const idle = await usageOf(berth, server)
    expect(idle).toMatchObject({
      server_id: server,
      status: 'running',
      cpus: 2,
      memory_limit_bytes: 4 * 2 ** 30,
      storage_limit_bytes: 20e9,
      processes: 0,
      ports: [],
    })
    await berth.call('PUT', `/servers/${server}/files`, { path: 'busy.ts', content: BUSY })
    await berth.exec(server, 'head -c 5000000 /dev/zero > big; bun busy.ts >/dev/null 2>&1 &')
    let last = idle
    await until(async () => {
      last = await usageOf(berth, server)
      const { cpu_percent: cpu, ports, storage_bytes: storage } = last
      const memory = last.memory_bytes - idle.memory_bytes
      return cpu > 3 && memory > 5e7 && ports.length === 1 && storage >= 5_000_000
    }, 'its use is shown')
    expect(last.processes).toBeGreaterThan(0)
    expect(last.processes).toBeLessThan(last.processes_limit)
  },
)

test('a sleeping server uses nothing but storage and is not woken; looking does not keep a server awake', async () => {
  await using berth = await testBerth({ flags: { 'idle-timeout': '10m' } })
  const server = await berth.server()
  await berth.exec(server, 'head -c 5000000 /dev/zero > big; sleep 1250 >/dev/null 2>&1 &')
  await berth.control('POST', '/clock', { advance: '6m' })
  expect((await usageOf(berth, server)).processes).toBeGreaterThan(0)
  await berth.control('POST', '/clock', { advance: '6m' })
  const expected = { status: 'sleeping', cpu_percent: 0, memory_bytes: 0, processes: 0 }
  const usage = await usageOf(berth, server)
  expect(usage).toMatchObject({ ...expected, ports: [] })
  expect(usage.storage_bytes).toBeGreaterThanOrEqual(5_000_000)
  const { servers } = (await berth.call('GET', '/usage/servers')).body
  expect(servers).toEqual([expect.objectContaining({ server_id: server, ...expected })])
  expect((await berth.call('GET', `/servers/${server}`)).body.server.status).toBe('sleeping')
})

test('all servers are measured in one call, each by itself, and only those that the key reaches', async () => {
  await using berth = await testBerth()
  const idle = await berth.server()
  const busy = await berth.server({ tier: 'large' })
  await berth.exec(busy, 'for n in 1 2 3; do sleep 1251 >/dev/null 2>&1 & done')
  const all = (await berth.call('GET', '/usage/servers')).body.servers
  expect(all).toMatchObject([
    { server_id: busy, processes: 3, cpus: 4 },
    { server_id: idle, processes: 0, cpus: 1 },
  ])
  const wishes = { label: 'one', allowed_server_ids: [idle] }
  const { key } = (await berth.call('POST', '/keys', wishes)).body
  const authorization = `Bearer ${key}`
  const mine = (await berth.call('GET', '/usage/servers', undefined, { authorization })).body.servers
  expect(mine).toMatchObject([{ server_id: idle }])
  expect(mine).toHaveLength(1)
  const other = await berth.call('GET', `/servers/${busy}/usage`, undefined, { authorization })
  expect(other.status).toBe(404)
})

test('a server says when it was used last: now while it is in use, also after a restart; looking does not count', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-test-'))
  try {
    const lastUse = async (berth: TestBerth, server: string) => (await usageOf(berth, server)).last_used_at
    let server = ''
    const at = (hour: number): string => `2030-01-01T${String(hour).padStart(2, '0')}:00:00.000Z`
    const moveTo = (berth: TestBerth, hour: number) =>
      berth.control('POST', '/clock', { set: at(hour), freeze: true })
    {
      await using berth = await testBerth({ dataDir })
      await moveTo(berth, 1)
      server = await berth.server()
      expect(await lastUse(berth, server)).toBeNull()
      await berth.exec(server, 'true')
      await moveTo(berth, 2)
      expect(await lastUse(berth, server)).toBe(at(1))
      await berth.call('GET', `/servers/${server}`)
      await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
      expect(await lastUse(berth, server)).toBe(at(1))
      await berth.call('PUT', `/servers/${server}/files`, { path: 'go', content: '' })
      expect(await lastUse(berth, server)).toBe(at(2))
      const held = berth.exec(server, 'rm go; touch begun; until [ -e go ]; do sleep 0.02; done')
      await until(
        async () => (await berth.call('GET', `/servers/${server}/files`)).body.files.includes('begun'),
        'it runs',
      )
      await moveTo(berth, 4)
      expect(await lastUse(berth, server)).toBe(at(4))
      await berth.call('PUT', `/servers/${server}/files`, { path: 'go', content: '' })
      await held
      const { servers } = (await berth.call('GET', '/usage/servers?quick=true')).body
      expect(servers).toEqual([expect.objectContaining({ server_id: server, last_used_at: at(4) })])
    }
    await using berth = await testBerth({ dataDir })
    await moveTo(berth, 6)
    expect(await lastUse(berth, server)).toBe(at(4))
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})
