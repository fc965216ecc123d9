import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests } from '../support/berth.ts'

const berth = await berthForTests()

describe('POST /servers', () => {
  test('provisions a running server of the smallest tier when nothing is wished for', async () => {
    const { status, body } = await berth.call('POST', '/servers')
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^srv_[0-9a-z]{26}$/),
      url: null,
      status: 'running',
      tier: 'small',
    })
    expect(await berth.exec(body.id, 'echo alive')).toMatchObject({ stdout: 'alive\n' })
  })

  test('takes an empty object like no body', async () => {
    expect((await berth.call('POST', '/servers', {})).status).toBe(201)
  })

  test('keeps what was wished for', async () => {
    const { body } = await berth.call('POST', '/servers', { task: 'ci', tier: 'large', region: 'eu-west' })
    const { body: got } = await berth.call('GET', `/servers/${body.id}`)
    expect(got.server).toMatchObject({ task: 'ci', tier: 'large', region: 'eu-west' })
  })
})

test('a task has at most 10,000 characters, however it is set', async () => {
  const id = await berth.server({ task: '🦊'.repeat(10_000) })
  const body = { task: 'x'.repeat(10_001) }
  for (const refused of [
    await berth.call('POST', '/servers', body),
    await berth.call('PATCH', `/servers/${id}`, body),
  ]) {
    expect(refused.status).toBe(400)
    expect(refused.body.message).toContain('10000 characters')
  }
  await berth.call('DELETE', `/servers/${id}`)
})

describe('GET /servers', () => {
  test('lists with the exact fields, newest first', async () => {
    const older = await berth.server({ task: 'older' })
    const newer = await berth.server({ task: 'newer' })
    const { status, body } = await berth.call('GET', '/servers')
    expect(status).toBe(200)
    expect(body.servers.slice(0, 2).map((server: { id: string }) => server.id)).toEqual([newer, older])
    expect(body.servers[0]).toEqual({
      id: newer,
      task: 'newer',
      tier: 'small',
      status: 'running',
      region: 'us-east',
      creditsUsed: 0,
      storageUsedGb: expect.any(Number),
      publicUrl: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
  })
})

describe('one server', () => {
  test('PATCH changes label and region, and only these', async () => {
    const id = await berth.server({ task: 'before', tier: 'medium' })
    const { status, body } = await berth.call('PATCH', `/servers/${id}`, { task: 'after', region: 'us-west' })
    expect(status).toBe(200)
    expect(body.server).toMatchObject({ id, task: 'after', region: 'us-west', tier: 'medium' })
  })

  test('DELETE ends its processes and removes its folder', async () => {
    const id = await berth.server()
    await berth.exec(id, 'sleep 1000 & echo started')
    const folder = join(berth.dataDir, 'servers', id)
    expect(existsSync(folder)).toBe(true)
    expect((await berth.call('DELETE', `/servers/${id}`)).body).toEqual({ id, deleted: true })
    expect(existsSync(folder)).toBe(false)
    expect((await berth.call('GET', `/servers/${id}`)).status).toBe(404)
    expect((await berth.call('DELETE', `/servers/${id}`)).status).toBe(404)
  })

  test.each(['GET', 'DELETE'])('%s of a server that does not exist is 404', async (method) => {
    const { status, body } = await berth.call(method, '/servers/srv_00000000000000000000000000')
    expect(status).toBe(404)
    expect(body.error).toBe('not_found')
  })

  test('what files take on disk shows in storageUsedGb', async () => {
    const id = await berth.server()
    await berth.exec(id, 'head -c 5000000 /dev/zero > big')
    const { body } = await berth.call('GET', `/servers/${id}`)
    expect(body.server.storageUsedGb).toBeGreaterThanOrEqual(0.005)
    expect(body.server.storageUsedGb).toBeLessThan(0.006)
  })
})

describe('POST /servers/{serverId}/actions', () => {
  const act = async (id: string, action: string) =>
    (await berth.call('POST', `/servers/${id}/actions`, { action })).body

  test('stop ends all processes and keeps the files; start brings it back', async () => {
    const id = await berth.server()
    await berth.exec(id, 'echo kept > file; sleep 1000 &')
    expect(await act(id, 'stop')).toEqual({ id, status: 'sleeping' })
    expect((await berth.call('GET', `/servers/${id}`)).body.server.status).toBe('sleeping')
    expect(await act(id, 'start')).toEqual({ id, status: 'running' })
    const { stdout } = await berth.exec(id, 'cat file; pgrep sleep || echo none')
    expect(stdout).toBe('kept\nnone\n')
  })

  test('start on a running and stop on a sleeping server change nothing', async () => {
    const id = await berth.server()
    await berth.exec(id, 'sleep 1000 & echo $! > pid')
    expect(await act(id, 'start')).toEqual({ id, status: 'running' })
    expect((await berth.exec(id, 'kill -0 $(cat pid) && echo alive')).stdout).toBe('alive\n')
    await act(id, 'stop')
    expect(await act(id, 'stop')).toEqual({ id, status: 'sleeping' })
  })

  test('restart ends the processes of before', async () => {
    const id = await berth.server()
    await berth.exec(id, 'sleep 1000 &')
    expect(await act(id, 'restart')).toEqual({ id, status: 'running' })
    expect((await berth.exec(id, 'pgrep sleep || echo none')).stdout).toBe('none\n')
  })

  test('a start and a stop at the same time leave status and processes in agreement', async () => {
    const id = await berth.server()
    await Promise.all(['stop', 'start', 'restart', 'stop', 'start'].map((action) => act(id, action)))
    const { body } = await berth.call('GET', `/servers/${id}`)
    expect(body.server.status).toBe('running')
    expect((await berth.exec(id, 'echo up')).stdout).toBe('up\n')
  })
})
