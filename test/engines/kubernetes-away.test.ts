import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Sandbox } from '../../src/compute/sandbox.ts'
import { LIMITS, run } from '../compute/bench.ts'
import type { KeyedInfo } from '../support/berth.ts'
import { SERVER_IMAGE } from '../support/kubernetes/image.ts'
import { until } from '../support/processes.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'
import { everyCombination } from '../support/thorough.ts'
import { disposable, failure, LongOutput, NAMESPACE, onCluster, podsIn } from './kubernetes-servers.ts'

onCluster('while the API server of a cluster is away', { nodes: 1, leaseMs: 120_000 }, (on) => {
  /** What a command on a server comes to at once: a failure, or that it waits. */
  const attempt = (sandbox: Sandbox): Promise<string> =>
    Promise.race([failure(run(sandbox, 'true')), Bun.sleep(500).then(() => 'it waits')])

  /** Waits until a command is refused. @returns why */
  async function refusal(sandbox: Sandbox): Promise<string> {
    let refused = ''
    const isRefused = async (): Promise<boolean> => {
      refused = await attempt(sandbox)
      return !['it waits', 'it succeeded'].includes(refused)
    }
    await until(isRefused, 'a refusal')
    return refused
  }

  const away = everyCombination ? [5, 60] : [5]
  test.each(away)(
    'for %i seconds, output goes on, and other commands are refused with what to check',
    async (seconds) => {
      const handle = await on.driver.create('srv_away')
      await using sandbox = disposable(await on.driver.start('srv_away', handle, LIMITS))
      const output = new LongOutput()
      const { exit } = sandbox.it.exec({
        ...{ command: LongOutput.command, timeoutMs: 240_000 },
        onOutput: (stream, data) => output.take(stream, data),
      })
      await until(() => output.bytes > 5e6, 'output')
      await on.cluster.apiServer.end('SIGKILL')
      const since = performance.now()
      expect(await refusal(sandbox.it)).toMatch(
        /^The server cannot be reached at present\. The API server https:\S+ does not respond: .* Check that it runs/,
      )
      expect(await failure(on.driver.create('srv_other'))).toMatch(
        /API server .* does not respond: .* Check that/,
      )
      await Bun.sleep(since + seconds * 1_000 - performance.now())
      on.cluster.apiServer.start()
      await until(async () => (await attempt(sandbox.it)) === 'it succeeded', 'a command again', 60_000)
      expect(await exit).toMatchObject({ exitCode: 0 })
      expect(output.isWhole()).toBe(true)
    },
    300_000,
  )

  test('and nobody says so, it is noticed within 15 seconds, and what runs goes on', async () => {
    const handle = await on.driver.create('srv_silent')
    await using sandbox = disposable(await on.driver.start('srv_silent', handle, LIMITS))
    const output = new LongOutput()
    const { exit } = sandbox.it.exec({
      ...{ command: LongOutput.command, timeoutMs: 110_000 },
      onOutput: (stream, data) => output.take(stream, data),
    })
    await until(() => output.bytes > 5e6, 'output')
    on.cluster.apiServer.signal('SIGSTOP')
    try {
      const since = performance.now()
      expect(await refusal(sandbox.it)).toContain('has not responded for 15 seconds')
      expect(performance.now() - since).toBeLessThan(19_000)
    } finally {
      on.cluster.apiServer.signal('SIGCONT')
    }
    expect(await exit).toMatchObject({ exitCode: 0 })
    expect(output.isWhole()).toBe(true)
  }, 120_000)

  test('for good, berth ends soon and says what it leaves, and the next one removes that', async () => {
    const args = [
      ...['--port', '0', '--data', join(on.directory, 'data'), '--compute', 'kubernetes'],
      ...['--kubeconfig', on.cluster.kubeconfig, '--kubernetes-namespace', NAMESPACE],
      ...['--server-image', SERVER_IMAGE],
    ]
    const exec = async ({ base_url, api_key }: KeyedInfo, id: string, command: string) =>
      call({ base_url, api_key } as KeyedInfo, 'POST', `/servers/${id}/exec`, { command })
    const started: ServeProcess[] = []
    const start = (): ServeProcess => {
      const berth = serve(args)
      started.push(berth)
      return berth
    }
    try {
      const first = start()
      const info = await first.ready
      const { id } = (await call(info, 'POST', '/servers')).body
      expect((await exec(info, id, 'echo kept >kept')).status).toBe(200)
      const [pod] = await podsIn(on.cluster)
      await on.cluster.apiServer.end('SIGKILL')
      // One that is sent before the absence is noticed waits.
      const refused = async () => Promise.race([exec(info, id, 'true'), Bun.sleep(500).then(() => null)])
      await until(async () => (await refused())?.status === 502, 'a refusal')
      expect((await refused())?.body).toEqual({
        error: 'compute_backend_error',
        message: expect.stringContaining('Check that it runs'),
      })
      const since = performance.now()
      first.child.kill('SIGTERM')
      await first.child.exited
      expect(performance.now() - since).toBeLessThan(20_000)
      expect(await first.stderr).toContain(String(pod?.metadata.name))

      const second = start()
      expect(await second.child.exited).toBe(1)
      expect(await second.stderr).toMatch(/API server .* does not respond/)

      on.cluster.apiServer.start()
      await until(async () => (await podsIn(on.cluster).catch(() => [])).length > 0, 'the API server', 60_000)
      const third = { ...(await start().ready), api_key: info.api_key }
      expect((await exec(third, id, 'cat kept')).body).toMatchObject({ stdout: 'kept\n' })
      const now = (await podsIn(on.cluster)).map(({ metadata }) => metadata.uid)
      expect([now.length, now.includes(pod?.metadata.uid ?? '')]).toEqual([1, false])
    } finally {
      for (const { child } of started) {
        child.kill('SIGTERM')
        await child.exited
      }
    }
    expect(await podsIn(on.cluster)).toEqual([])
  }, 240_000)
})
