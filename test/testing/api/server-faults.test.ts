import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { readEvents } from '../../support/events.ts'
import { processesOf, until } from '../../support/processes.ts'
import { probedTiers } from '../../support/tiers.ts'

/** Little enough to run out of quickly: 128 MiB. */
const PLAN = { memory_gib: { small: 0.125 } }

for (const [isolation, reason] of await probedTiers())
  describe.skipIf(reason !== null)(
    `inside a server, isolated by ${isolation}${reason ? ` (SKIP: ${reason})` : ''},`,
    () => {
      let berth: TestBerth
      let server: string
      beforeAll(async () => {
        berth = await testBerth({ flags: { isolation, plan: PLAN } })
        server = await berth.server()
      })
      afterAll(() => berth?.[Symbol.asyncDispose]())
      beforeEach(async () => {
        await lift()
        await berth.exec(server, 'true')
      })

      const fault = (body: object, on = server) => berth.control('POST', `/servers/${on}/fault`, body)
      const lift = (kind = '') => berth.control('DELETE', `/servers/${server}/fault${kind}`)
      const active = async () => (await berth.control('GET', `/servers/${server}/fault`)).body.faults
      const status = async () => (await berth.call('GET', `/servers/${server}`)).body.server.status

      /** Begins a command; resolves when it has printed something, with what resolves to its end. */
      async function begun(command: string): Promise<{ end: Promise<unknown> }> {
        const response = await berth.fetch(`/servers/${server}/exec`, {
          method: 'POST',
          headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
          body: JSON.stringify({ command }),
        })
        const events = readEvents(response)
        await events.next()
        const follow = async (): Promise<unknown> => {
          let stderr = ''
          for await (const { event, data } of events) {
            if (event === 'stderr') stderr += (data as { data: string }).data
            if (event === 'exit') return { ...(data as object), stderr }
          }
          return null
        }
        return { end: follow() }
      }

      test('a crash ends every process, the server sleeps, and the next command wakes it', async () => {
        const { end } = await begun('sleep 1000 & echo up; wait')
        expect((await fault({ kind: 'crash' })).body).toEqual({
          server_id: server,
          kind: 'crash',
          active: false,
        })
        expect(await end).toMatchObject({ exitCode: 137 })
        expect(await status()).toBe('sleeping')
        expect(processesOf(`${berth.dataDir}/servers/${server}`)).toEqual([])
        const { body } = await berth.control('GET', '/events?event=server.stopped&limit=1')
        expect(body.events[0].data).toMatchObject({ server_id: server, status: 'sleeping' })
        const refused = await fault({ kind: 'hang' })
        expect([refused.status, refused.body.error]).toEqual([400, 'bad_request'])
        expect(refused.body.message).toContain('sleeps')
        expect((await berth.exec(server, 'echo again')).stdout).toBe('again\n')
      })

      test('memory runs out for a process of its own, or for the next commands; others live on', async () => {
        const { end } = await begun('echo up; until [ -e over ]; do sleep 0.05; done; rm over')
        expect((await fault({ kind: 'oom' })).body).toMatchObject({ kind: 'oom', active: false })
        await fault({ kind: 'oom', times: 2 })
        expect((await berth.exec(server, 'echo hi')).exitCode).toBe(137)
        expect(await active()).toMatchObject([{ kind: 'oom', times: 2, times_left: 1 }])
        expect((await berth.exec(server, 'echo hi')).exitCode).toBe(137)
        expect(await berth.exec(server, 'echo hi')).toMatchObject({ exitCode: 0, stdout: 'hi\n' })
        expect(await active()).toEqual([])
        await berth.exec(server, 'touch over')
        expect(await end).toMatchObject({ exitCode: 0 })
      })

      test('no file can grow while the disk is full, by a command or the API, and what grows is ended', async () => {
        const path = `/servers/${server}/files`
        await berth.exec(server, 'echo before > kept')
        // It begins to write on request.
        const { end } = await begun(
          'echo up; until [ -e go ]; do sleep 0.02; done; while echo more >> grown; do sleep 0.1; done',
        )
        await fault({ kind: 'disk_full' })
        const refused = await berth.call('PUT', path, { path: 'new', content: 'x' })
        expect([refused.status, refused.body.error]).toEqual([400, 'bad_request'])
        expect(refused.body.message).toContain('storage is full')
        expect((await berth.exec(server, 'echo x > new')).exitCode).not.toBe(0)
        expect((await berth.exec(server, 'cat kept; rm -f new')).stdout).toBe('before\n')
        await berth.exec(server, 'touch go')
        expect(await end).toMatchObject({
          exitCode: 137,
          stderr: expect.stringContaining('counts as full by a fault'),
        })
        const { body } = await berth.call('GET', `/servers/${server}`)
        expect(body.server.storageUsedGb).toBeGreaterThan(4.9)
        expect((await lift('/disk_full')).body).toEqual({ server_id: server, lifted: ['disk_full'] })
        const listed = async () => (await berth.call('GET', '/servers')).body.servers
        await until(
          async () => (await listed()).every(({ storageUsedGb }: never) => storageUsedGb < 1),
          'lists to tell what is really used',
        )
        expect((await berth.call('PUT', path, { path: 'new', content: 'x' })).status).toBe(201)
        expect((await berth.exec(server, 'echo y > new; cat new; rm go grown')).stdout).toBe('y\n')
      })

      test('processes stop while it hangs: commands time out, and continue when it is lifted', async () => {
        const { end } = await begun('echo up; until [ -e go ]; do sleep 0.02; done; rm go')
        expect((await fault({ kind: 'hang' })).body).toMatchObject({ kind: 'hang', active: true })
        expect(await berth.exec(server, 'echo hi', { timeoutMs: 300 })).toMatchObject({
          stdout: '',
          timedOut: true,
        })
        const waiting = berth.exec(server, 'echo hi')
        await berth.call('PUT', `/servers/${server}/files`, { path: 'go', content: '' })
        expect(await Promise.race([end, waiting, Bun.sleep(400).then(() => 'still')])).toBe('still')
        expect((await lift()).body.lifted).toEqual(['hang'])
        expect((await waiting).stdout).toBe('hi\n')
        expect(await end).toMatchObject({ exitCode: 0 })
        await fault({ kind: 'hang', for_ms: 200 })
        expect((await berth.exec(server, 'echo over')).stdout).toBe('over\n')
        expect(await active()).toEqual([])
      })

      test('a command that is just starting when a hang ends goes on too', async () => {
        for (let forMs = 1; forMs <= 12; forMs += 1) {
          await fault({ kind: 'hang', for_ms: forMs })
          const all = [1, 2, 3].map(() => berth.exec(server, 'echo on', { timeoutMs: 20_000 }))
          for (const one of await Promise.all(all))
            expect(one).toMatchObject({ stdout: 'on\n', timedOut: false })
        }
      })

      test('commands are slow, so many times or until it is lifted', async () => {
        const took = async (): Promise<number> => {
          const began = performance.now()
          expect((await berth.exec(server, 'echo hi')).stdout).toBe('hi\n')
          return performance.now() - began
        }
        await fault({ kind: 'slow_exec', delay_ms: 3_000, times: 1 })
        expect(await took()).toBeGreaterThan(2_990)
        expect(await active()).toEqual([])
        await fault({ kind: 'slow_exec', delay_ms: 60_000 })
        const waiting = took()
        await until(async () => (await active()).length === 1, 'it holds')
        await lift()
        expect(await waiting).toBeLessThan(30_000)
      })

      test('everything ends with the server: a stop does not wait for hung processes', async () => {
        const { end } = await begun('echo up; sleep 1000')
        for (const body of [{ kind: 'hang' }, { kind: 'disk_full' }, { kind: 'slow_exec', delay_ms: 60_000 }])
          await fault(body)
        expect((await active()).length).toBe(3)
        await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
        // Ended by SIGTERM, or with its sandbox.
        expect([137, 143]).toContain(((await end) as { exitCode: number }).exitCode)
        expect(processesOf(`${berth.dataDir}/servers/${server}`)).toEqual([])
        await berth.call('POST', `/servers/${server}/actions`, { action: 'start' })
        expect(await active()).toEqual([])
        expect(
          (await berth.call('PUT', `/servers/${server}/files`, { path: 'a', content: 'a' })).status,
        ).toBe(201)
      })
    },
  )

describe('a fault inside a server', () => {
  let berth: TestBerth
  let server: string
  beforeAll(async () => {
    berth = await testBerth({ flags: { isolation: 'none', plan: { memory_gib: { small: 65_536 } } } })
    server = await berth.server()
  })
  afterAll(() => berth[Symbol.asyncDispose]())

  test('that would use up the memory of this machine is refused', async () => {
    const answer = await berth.control('POST', `/servers/${server}/fault`, { kind: 'oom' })
    expect([answer.status, answer.body.error]).toEqual([400, 'bad_request'])
    expect(answer.body.message).toContain('Use a smaller tier, or a plan with less memory.')
    expect((await berth.control('GET', `/servers/${server}/fault`)).body).toEqual({ faults: [] })
  })

  test('is 404 for an unknown server, and so is the end of an unknown kind', async () => {
    expect((await berth.control('POST', '/servers/srv_none/fault', { kind: 'crash' })).status).toBe(404)
    expect((await berth.control('DELETE', `/servers/${server}/fault/fire`)).status).toBe(404)
    expect((await berth.control('DELETE', `/servers/${server}/fault/hang`)).body.lifted).toEqual([])
  })
})
