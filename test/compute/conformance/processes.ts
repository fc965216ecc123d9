import { describe, expect, test } from 'bun:test'
import type { Sandbox, ServerProcess } from '../../../src/compute/sandbox.ts'
import { until } from '../../support/processes.ts'
import { Bench, run, type Subject } from '../bench.ts'

/** Resolves to the process with this command line, when it runs. */
async function found(sandbox: Sandbox, command: string): Promise<ServerProcess> {
  let process: ServerProcess | undefined
  await until(async () => {
    process = (await sandbox.processes()).find((one) => one.command === command)
    return process !== undefined
  }, `${command} runs`)
  if (process === undefined) throw new Error('It has ended.')
  return process
}

/** What is shown of a server's processes, and how they are signalled. */
export function processTests(name: Subject): void {
  describe('the processes of a server', () => {
    test('are those that its commands have started, by the numbers that programs see, and no other', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const other = await bench.start('srv_b')
      expect(await sandbox.processes()).toEqual([])
      await run(other, 'sleep 1236 >/dev/null 2>&1 &')
      const owner = { kind: 'task', id: 'task_a' } as const
      const { stdout } = await run(sandbox, 'sleep 1237 >/dev/null 2>&1 & echo $!', { owner })
      const sleeper = await found(sandbox, 'sleep 1237')
      expect(sleeper).toMatchObject({
        pid: Number(stdout),
        state: 'sleeping',
        cpuPercent: 0,
        ports: [],
        owner,
      })
      expect(sleeper.memoryBytes).toBeGreaterThan(0)
      expect(sleeper.ageMs).toBeLessThan(60_000)
      expect((await sandbox.processes()).map(({ command }) => command)).toEqual(['sleep 1237'])
    })

    test('show their use of processors, and whether they are stopped', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      await run(sandbox, 'sh -c "while :; do :; done" & sleep 1238 &')
      await run(sandbox, `kill -STOP ${(await found(sandbox, 'sleep 1238')).pid}`)
      const busy = 'sh -c while :; do :; done'
      await found(sandbox, busy)
      const isBusy = async () => (await found(sandbox, busy)).cpuPercent > 5
      await until(isBusy, 'its use of a processor is shown')
      expect(await found(sandbox, 'sleep 1238')).toMatchObject({ state: 'stopped', cpuPercent: 0 })
    })

    test('use processors and memory, as their server is measured', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const idle = await sandbox.consumption()
      expect(idle.processes).toBe(0)
      await run(sandbox, 'sleep 1248 & sleep 1249 &')
      await run(
        sandbox,
        `bun -e 'Bun.write("up", String(new Uint8Array(6e7).fill(1).length)); for (;;) {}' &`,
      )
      const isUp = async () => (await run(sandbox, 'cat up')).stdout === '60000000'
      await until(isUp, 'it has its memory')
      const before = await sandbox.consumption()
      const isBusy = async () => (await sandbox.consumption()).cpuMs - before.cpuMs > 30
      await until(isBusy, 'it uses a processor')
      const { at, memoryBytes, processes } = await sandbox.consumption()
      expect(at).toBeGreaterThan(idle.at)
      expect(memoryBytes - idle.memoryBytes).toBeGreaterThan(5e7)
      expect(processes).toBeGreaterThanOrEqual(3)
    })

    test('end by a signal; a program may ignore others than KILL', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      await run(sandbox, `sh -c 'trap "" TERM; echo up > up; while :; do sleep 0.1; done' & sleep 1239 &`)
      await until(async () => (await run(sandbox, 'cat up')).exitCode === 0, 'it ignores TERM')
      const { pid } = await found(sandbox, 'sleep 1239')
      expect(await sandbox.signal(pid, 'TERM')).toBe('ended')
      expect(await sandbox.signal(pid, 'TERM')).toBe('missing')
      const all = await sandbox.processes()
      const stubborn = all.find(({ command }) => command.includes('trap'))?.pid ?? 0
      expect(await sandbox.signal(stubborn, 'TERM')).toBe('running')
      expect(await sandbox.signal(stubborn, 'KILL')).toBe('ended')
    })

    test('do not include sandboxd, nor processes of berth or of other servers, which get no signal', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const other = await bench.start('srv_b')
      await run(other, 'sleep 1240 >/dev/null 2>&1 &')
      const { pid: parent } = { pid: Number((await run(sandbox, 'echo $PPID')).stdout) }
      for (const pid of [1, parent, process.pid, 2 ** 31]) {
        expect([pid, await sandbox.signal(pid, 'KILL')]).toEqual([pid, 'missing'])
      }
      if (sandbox.network === 'shared') {
        const { pid } = await found(other, 'sleep 1240')
        expect(await sandbox.signal(pid, 'KILL')).toBe('missing')
      }
      expect((await run(sandbox, 'echo on')).stdout).toBe('on\n')
      await found(other, 'sleep 1240')
    })
  })
}
