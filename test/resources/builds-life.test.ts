import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests, type TestBerth, testBerth } from '../support/berth.ts'
import {
  begun,
  buildLog,
  built,
  HELD,
  HOLD,
  letGo,
  over,
  PHASES,
  reaches,
  type ShownBuild,
  shownBuild,
  statesOf,
  upTo,
} from '../support/builds.ts'
import { killServer, until } from '../support/processes.ts'

const berth = await berthForTests({ flags: { plan: { servers: 200 } } })

const filesOf = async (serverId: string): Promise<string[]> =>
  (await berth.call('GET', `/servers/${serverId}/files`)).body.files

const statusOf = async (serverId: string): Promise<string> =>
  (await berth.call('GET', `/servers/${serverId}`)).body.server.status

describe('one at a time', () => {
  test('builds of a server wait for their turn; the server is building meanwhile, and others are not', async () => {
    const [serverId, other] = [await berth.server(), await berth.server()]
    const answer = await berth.call('POST', `/servers/${serverId}/builds`, {
      goal: `A landing page\n${HOLD}`,
    })
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({
      build_id: expect.stringMatching(/^bld_[0-9a-z]{26}$/),
      status: 'queued',
      steps: PHASES.map((key) => ({ key, label: expect.stringMatching(/^[A-Z]/), status: 'pending' })),
    })
    const first = answer.body.build_id
    await reaches(berth, serverId, first, 'implement')
    expect(await statusOf(serverId)).toBe('building')
    const second = await begun(berth, serverId, 'Go on\nrun: test -e go')
    const third = await begun(berth, serverId, 'Go on')
    expect((await built(berth, other, 'A landing page')).url).not.toBeNull()
    expect((await shownBuild(berth, serverId, first)).status).toBe('running')
    for (const id of [second, third]) {
      expect(await shownBuild(berth, serverId, id)).toMatchObject({
        status: 'queued',
        url: null,
        artifacts: [],
      })
    }
    const { builds } = (await berth.call('GET', `/servers/${serverId}/builds`)).body
    expect(builds.map(({ id }: ShownBuild) => id)).toEqual([third, second, first])
    expect(await buildLog(berth, serverId, second)).toBe('berth: Waits for the build before it.')
    await letGo(berth, serverId)
    const [a, b, c] = [
      await over(berth, serverId, first),
      await over(berth, serverId, second),
      await over(berth, serverId, third),
    ]
    expect([a.url, b.url, c.url].every((url) => url !== null)).toBe(true)
    await until(async () => (await statusOf(serverId)) === 'running', 'the server runs again')
  })

  test('a build counts as use of its server', async () => {
    await using idle = await testBerth({
      flags: { 'idle-timeout': '1m', freeze: '2030-01-01T00:00:00Z' },
    })
    const serverId = await idle.server()
    const id = await begun(idle, serverId, `A landing page\n${HOLD}`)
    await reaches(idle, serverId, id, 'implement')
    await idle.control('POST', '/clock', { advance: '1h' })
    expect((await shownBuild(idle, serverId, id)).status).toBe('running')
    await letGo(idle, serverId)
    expect((await over(idle, serverId, id)).url).not.toBeNull()
  })

  test('a sleeping server is woken', async () => {
    const serverId = await berth.server()
    await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
    expect((await built(berth, serverId, 'A landing page')).url).not.toBeNull()
    expect(await statusOf(serverId)).toBe('running')
  })
})

describe('what ends builds from outside', () => {
  /** A build that is held in implement, and one that waits behind it. */
  async function two(at: TestBerth = berth) {
    const serverId = await at.server()
    const running = await begun(at, serverId, `A landing page\n${HOLD}`)
    await reaches(at, serverId, running, 'implement')
    return { serverId, running, queued: await begun(at, serverId, 'A landing page') }
  }

  test.each(['stop', 'restart'])(
    'a server’s %s ends them at once; the log says so, and a new one runs',
    async (action) => {
      const { serverId, running, queued } = await two()
      const { body } = await berth.call('POST', `/servers/${serverId}/actions`, { action })
      expect(body.status).toBe(action === 'stop' ? 'sleeping' : 'running')
      expect(statesOf(await shownBuild(berth, serverId, running))).toEqual(upTo('implement'))
      for (const id of [running, queued]) {
        expect(await shownBuild(berth, serverId, id)).toMatchObject({ status: 'completed', url: null })
      }
      expect(await buildLog(berth, serverId, running)).toEndWith(
        'berth: The server was stopped while the build ran.',
      )
      expect(await buildLog(berth, serverId, queued)).toEndWith(
        'berth: The server was stopped while the build waited for its turn.',
      )
      await letGo(berth, serverId)
      expect((await built(berth, serverId, 'A landing page')).url).not.toBeNull()
      expect(await statusOf(serverId)).toBe('running')
    },
  )

  test.each(Object.keys(HELD))(
    'a stop in %s leaves nothing that runs, and reports what was made',
    async (phase) => {
      const serverId = await berth.server()
      const goal = `A landing page\nrun: rm robots.txt; echo > new.txt\n${HELD[phase]}`
      const id = await begun(berth, serverId, goal)
      await reaches(berth, serverId, id, phase)
      await until(async () => (await filesOf(serverId)).includes('new.txt'), 'the agent has begun')
      await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
      const build = await shownBuild(berth, serverId, id)
      expect(build).toMatchObject({ status: 'completed', url: null })
      expect(statesOf(build)).toEqual(upTo(phase))
      const isTold = async () => (await shownBuild(berth, serverId, id)).artifacts.includes('new.txt')
      await until(isTold, 'the artifacts to be told')
      const { artifacts } = await shownBuild(berth, serverId, id)
      expect(await filesOf(serverId)).toEqual(expect.arrayContaining(artifacts))
      // Nothing of it wakes the server, or publishes what it left.
      await Bun.sleep(200)
      expect(await statusOf(serverId)).toBe('sleeping')
      expect((await berth.call('GET', `/servers/${serverId}/deployments`)).body.deployments).toEqual([])
    },
  )

  test.each(Object.keys(HELD))('a server is deleted at once while a build is in %s', async (phase) => {
    const serverId = await berth.server()
    const id = await begun(berth, serverId, `A landing page\n${HELD[phase]}`)
    await reaches(berth, serverId, id, phase)
    const started = performance.now()
    expect((await berth.call('DELETE', `/servers/${serverId}`)).status).toBe(200)
    expect(performance.now() - started).toBeLessThan(30_000)
    expect((await berth.call('GET', `/servers/${serverId}`)).status).toBe(404)
  })

  test('they go with their server, logs included', async () => {
    const { serverId, running } = await two()
    const logs = join(berth.dataDir, 'logs/builds', serverId)
    expect(readdirSync(logs)).toContain(running)
    expect((await berth.call('DELETE', `/servers/${serverId}`)).status).toBe(200)
    expect((await berth.call('GET', `/servers/${serverId}/builds/${running}`)).status).toBe(404)
    await until(() => !existsSync(logs), 'the logs to be gone')
  })

  test('a sandbox that ends by itself ends them, and the next build wakes the server', async () => {
    const serverId = await berth.server()
    const under = built(berth, serverId, 'A landing page\nrun: touch begun; sleep 100')
    await until(
      async () => (await berth.exec(serverId, 'find . -name begun')).stdout !== '',
      'its command is under way',
    )
    killServer(berth.dataDir, serverId)
    const build = await under
    expect(build.url).toBeNull()
    expect(statesOf(build)).toEqual(upTo('implement'))
    await until(async () => (await statusOf(serverId)) === 'sleeping', 'the server sleeps')
    expect((await built(berth, serverId, 'A landing page')).url).not.toBeNull()
    expect(await statusOf(serverId)).toBe('running')
  })

  test('a build is charged; at the cap none begins, and those there are end', async () => {
    const account = (await berth.control('POST', '/accounts', { budget_cap: 1.2 })).body
    const headers = { authorization: `Bearer ${account.api_key}` }
    const call = (method: string, path: string, body?: unknown) => berth.call(method, path, body, headers)
    const serverId = (await call('POST', '/servers')).body.id
    const goal = `A landing page\n${HOLD}`
    const first = (await call('POST', `/servers/${serverId}/builds`, { goal })).body.build_id
    const { creditsUsed } = (await call('GET', `/servers/${serverId}`)).body.server
    expect(creditsUsed).toBeGreaterThanOrEqual(0.5)
    expect(creditsUsed).toBeLessThan(0.6)
    const second = (await call('POST', `/servers/${serverId}/builds`, { goal })).body.build_id
    const third = (await call('POST', `/servers/${serverId}/builds`, { goal })).body.build_id
    const shown = async (id: string) => (await call('GET', `/servers/${serverId}/builds/${id}`)).body.build
    for (const id of [first, second, third]) {
      await until(async () => (await shown(id)).status === 'completed', 'the cap ends it')
      expect((await shown(id)).url).toBeNull()
      const { logs } = (await call('GET', `/servers/${serverId}/builds/${id}/logs`)).body
      expect(logs.at(-1).text).toContain('The budget of the account was used up')
    }
    const refused = await call('POST', `/servers/${serverId}/builds`, { goal })
    expect([refused.status, refused.body.error]).toEqual([402, 'budget_exceeded'])
    expect((await call('GET', `/servers/${serverId}/builds`)).body.builds).toHaveLength(3)
    await berth.control('DELETE', `/accounts/${account.id}`)
  })

  test('the end of berth ends the one that runs; the one that waits goes on at the next start', async () => {
    const first = await testBerth()
    const { dataDir } = first
    const flags = { 'api-key': first.info.api_key }
    const { serverId, running, queued } = await two(first)
    await first.stop()
    const again = await testBerth({ dataDir, flags })
    try {
      expect(await shownBuild(again, serverId, running)).toMatchObject({ status: 'completed', url: null })
      expect((await over(again, serverId, queued)).url).not.toBeNull()
      await until(
        async () => (await again.call('GET', `/servers/${serverId}`)).body.server.status === 'running',
        'the server runs',
      )
    } finally {
      await again[Symbol.asyncDispose]()
      await first[Symbol.asyncDispose]()
    }
  })
})
