import { describe, expect, test } from 'bun:test'
import { randomInt } from 'node:crypto'
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Enforced } from '../../../src/compute/driver.ts'
import { LocalSandbox } from '../../../src/compute/local/sandbox.ts'
import { ServerDirectories } from '../../../src/compute/local/server-directories.ts'
import {
  commandMarker,
  findFamily,
  isStopped,
  listProcesses,
  MARKER_NAME,
  readProcess,
} from '../../../src/compute/processes.ts'
import { ComputeError, type ExecExit, type Sandbox } from '../../../src/compute/sandbox.ts'
import type { Isolation } from '../../../src/config/config.ts'
import { Bench, driverOn, isSandboxdSafe, processesMarked, run, type Subject, until } from '../bench.ts'

/** Sends a signal to its shell's parent, sandboxd, when its input has ended. */
const toAgent = (signal: string): string => `read -r _; kill -${signal} $PPID; sleep 300; true`

/** Runs a command whose input ends once berth knows that it has started: what it does to sandboxd would come first else. */
function runOnceStarted(sandbox: Sandbox, command: string, timeoutMs: number | null): Promise<ExecExit> {
  const stdin = new ReadableStream<Uint8Array>({
    pull: (controller) => execution.pid.then(() => controller.close()),
  })
  const execution = sandbox.exec({ command, stdin, timeoutMs, onOutput() {} })
  return execution.exit
}

/** How commands and servers end. */
export function endTests(name: Subject): void {
  describe('the end', () => {
    test('at the timeout takes children along that made two sessions of their own', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const command = "setsid sh -c 'setsid sleep 300 & sleep 300' & setsid -f sleep 300; sleep 300"
      const running = run(sandbox, command, { timeoutMs: 4000 })
      await until('all to run', async () => (await bench.commands()).length >= 5)
      const result = await running
      expect(result).toMatchObject({ exitCode: 143, timedOut: true })
      expect(await bench.commands()).toEqual([])
    })

    test('at the timeout leaves other commands alone', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      await run(sandbox, 'sleep 300 &')
      const [, other] = await Promise.all([
        run(sandbox, 'sleep 300', { timeoutMs: 200 }),
        run(sandbox, 'sleep 0.5; echo fine'),
      ])
      expect(other).toMatchObject({ exitCode: 0, stdout: 'fine\n' })
      expect((await bench.commands()).length).toBe(1)
    })

    test('comes by SIGKILL to a command that ignores SIGTERM, a second later', async () => {
      await using bench = new Bench(name)
      const began = performance.now()
      const result = await run(await bench.start(), "trap '' TERM; while :; do sleep 0.1; done", {
        timeoutMs: 1000,
      })
      expect(result).toMatchObject({ exitCode: 137, timedOut: true })
      expect(performance.now() - began).toBeGreaterThan(2000)
      expect(performance.now() - began).toBeLessThan(15_000)
    })

    test('gives a command a chance to clean up', async () => {
      await using bench = new Bench(name)
      const command = "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done"
      const result = await run(await bench.start(), command, { timeoutMs: 1000 })
      expect(result).toMatchObject({ exitCode: 9, timedOut: true, stdout: 'up\nbye\n' })
    })

    test('by cancelling takes all along that the command started', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const execution = sandbox.exec({
        command: 'setsid sleep 300 & sleep 300',
        timeoutMs: 20_000,
        onOutput() {},
      })
      await until('both to run', async () => (await bench.commands()).length >= 3)
      execution.cancel()
      execution.cancel()
      expect(await execution.exit).toMatchObject({ exitCode: 143, timedOut: false })
      expect(await bench.commands()).toEqual([])
    })

    test('of a command leaves its background child to the server, whose stop ends it', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const bare = bareSleep()
      await run(sandbox, `sleep 300 & setsid -f sleep 300; env -i setsid -f ${bare}`)
      expect((await bench.commands()).length).toBe(2)
      await until('the one without a marker', () => sleepersOf(bare).length === 1)
      await sandbox.stop()
      expect(await bench.commands()).toEqual([])
      expect(sleepersOf(bare)).toEqual([])
    })

    test('of the server resolves `exited`, ends commands as killed, and refuses new ones', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const deaf = Promise.withResolvers<void>()
      const { exit } = sandbox.exec({
        command: "trap '' TERM; echo deaf; while :; do sleep 0.1; done",
        timeoutMs: 20_000,
        onOutput: () => deaf.resolve(),
      })
      await deaf.promise
      await Promise.all([sandbox.stop(), sandbox.stop()])
      expect((await exit).exitCode).toBe(137)
      expect((await sandbox.exited).reason).toContain('stopped')
      expect(() => sandbox.exec({ command: 'true', timeoutMs: 1000, onOutput() {} })).toThrow(ComputeError)
      await sandbox.stop()
    })

    test('of sandboxd by a command’s hand ends the server, which can be started again', async () => {
      await using bench = new Bench(name)
      const handle = await bench.driver.create('srv_a')
      const sandbox = await bench.startAgain('srv_a', handle)
      if (await isSandboxdSafe(sandbox)) return
      await run(sandbox, 'sleep 300 & echo kept > file')
      expect((await runOnceStarted(sandbox, toAgent('KILL'), 20_000)).exitCode).toBe(137)
      expect((await sandbox.exited).reason).not.toBe('')
      expect(await bench.commands()).toEqual([])
      const again = await bench.startAgain('srv_a', handle)
      expect((await run(again, 'cat file')).stdout).toBe('kept\n')
    })

    test.each([
      ['while a command runs', toAgent('STOP')],
      ['in the background', '(sleep 0.2; kill -STOP $PPID; exec sleep 300) > /dev/null 2>&1 &'],
    ])(
      'comes to a server whose sandboxd was stopped %s, within seconds and with a reason',
      async (_, command) => {
        await using bench = new Bench(name)
        const sandbox = await bench.start()
        if (!(sandbox instanceof LocalSandbox) || (await isSandboxdSafe(sandbox))) return
        const running = runOnceStarted(sandbox, command, null)
        const begun = performance.now()
        expect((await sandbox.exited).reason).toContain('sandboxd was stopped')
        expect(performance.now() - begun).toBeLessThan(4_000)
        await running
        expect(await bench.commands()).toEqual([])
      },
    )

    test('comes to a server whose sandboxd was stopped by a command', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      if (await isSandboxdSafe(sandbox)) return
      const running = runOnceStarted(sandbox, toAgent('STOP'), 20_000)
      await until('sandboxd to stop', async () => (await bench.commands()).length === 2)
      await sandbox.stop()
      expect((await running).exitCode).toBe(137)
      expect(await bench.commands()).toEqual([])
    })
  })
}

/**
 * How servers of this machine end without a look at what is not theirs, and what is left of them when berth is killed.
 *
 * @param enforced what berth says it enforces
 */
export function machineEndTests(name: Isolation, enforced: Enforced): void {
  // Without both, the marker in its environment is all that shows which process is a server's.
  const isTraced = name === 'bubblewrap' || Object.values(enforced).includes('cgroup')

  describe('the end', () => {
    test.skipIf(!isTraced)(
      'of a server touches no process outside, not even one that carries its marker',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start()
        await run(sandbox, 'sleep 300 & setsid -f sleep 300')
        await using outside = new Bystander(bench, 'srv_a')
        await sandbox.stop()
        expect(outside.lives).toBe(true)
        expect(await bench.commands()).toEqual([outside.pid])
      },
    )

    test.skipIf(!isTraced)('of what a killed berth left touches no process outside either', async () => {
      await using bench = new Bench(name)
      const host = await startHost(bench, 'sleep 300 & sleep 0.1; kill -STOP $PPID; sleep 300')
      const [note] = readdirSync(join(bench.dataDir, 'running'))
      expect(note).toBe('srv_host')
      await using outside = new Bystander(bench, 'srv_host')
      host.kill('SIGKILL')
      await host.exited
      await driverOn(name, bench.dataDir).takeStock([], []).end()
      await until('all others to be gone', async () => (await processesOf(bench)).length === 1)
      expect(outside.lives).toBe(true)
      expect(readdirSync(join(bench.dataDir, 'running'))).toEqual([])
    })

    test('of what a killed berth left comes to nothing of the directory that its own is a copy of', async () => {
      await using bench = new Bench(name)
      await using copy = new Bench(name)
      const sandbox = await bench.start()
      for (const part of ['running', 'servers']) {
        cpSync(join(bench.dataDir, part), join(copy.dataDir, part), { recursive: true })
      }
      await copy.driver.takeStock([], []).end()
      expect(readdirSync(join(copy.dataDir, 'running'))).toEqual([])
      expect((await run(sandbox, 'echo well')).stdout).toBe('well\n')
    })

    test('of berth by kill -9 leaves no process', async () => {
      await using bench = new Bench(name)
      const host = await startHost(bench, 'sleep 300 & setsid -f sleep 300; sleep 300')
      host.kill('SIGKILL')
      await host.exited
      await until('all to be gone', () => processesOf(bench).then(({ length }) => length === 0))
    })

    test('by kill -9 with sandboxd stopped leaves what the next start ends, which ends nothing of other data directories', async () => {
      await using bench = new Bench(name)
      await using elsewhere = new Bench(name)
      const other = await elsewhere.start()
      const bystander = run(other, 'sleep 300')
      await until('the bystander', async () => (await elsewhere.commands()).length > 0)
      // One has neither the marker nor its parents; sandboxd has adopted it. The host ends a server whose sandboxd is
      // silent for seconds, so nothing that may take long comes between.
      const bare = bareSleep()
      const shed = `env -i setsid -f ${bare}`
      const host = await startHost(bench, `sleep 300 & ${shed}; sleep 0.1; kill -STOP $PPID; sleep 300`)
      await until('the one without a marker', () => sleepersOf(bare).length === 1)
      host.kill('SIGKILL')
      await host.exited
      const handle = { kind: 'local', folder: 'servers/srv_host' }
      await driverOn(name, bench.dataDir).takeStock([handle], []).end()
      const marker = new ServerDirectories(bench.dataDir).serverMarker(handle)
      const family = { roots: [], sessions: [], marker, except: [] }
      await until('all to be gone', () => findFamily(family).length === 0)
      expect(sleepersOf(bare)).toEqual([])
      expect((await run(other, 'echo well')).stdout).toBe('well\n')
      await other.stop()
      await bystander
    })
  })
}

/** A process outside of all servers that carries the marker of one. */
class Bystander implements AsyncDisposable {
  readonly #process: Bun.Subprocess

  constructor({ dataDir }: Bench, serverId: string) {
    const marker = new ServerDirectories(dataDir).serverMarker({
      kind: 'local',
      folder: `servers/${serverId}`,
    })
    this.#process = Bun.spawn(['sleep', '300'], { env: { [MARKER_NAME]: commandMarker(marker, 1) } })
  }

  get pid(): number {
    return this.#process.pid
  }

  /** Whether it runs, and was not stopped. */
  get lives(): boolean {
    return readProcess(this.pid) !== null && !isStopped(this.pid)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#process.exited
  }
}

/** Another process that runs a command on a server of the same data folder, until it is killed. */
async function startHost(bench: Bench, command: string): Promise<Bun.Subprocess> {
  const program = join(import.meta.dir, 'host.ts')
  const host = Bun.spawn([process.execPath, program, bench.name, bench.dataDir, command], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const handle = { kind: 'local', folder: 'servers/srv_host' }
  const marker = new ServerDirectories(bench.dataDir).serverMarker(handle)
  await until('the host’s command', () => processesMarked(marker).length >= 2)
  return host
}

/** All marked processes of the data folder, agents too. */
async function processesOf(bench: Bench): Promise<number[]> {
  const marker = new ServerDirectories(bench.dataDir).dataMarker()
  return findFamily({ roots: [], sessions: [], marker, except: [] })
}

/**
 * Returns a command that sleeps for a time of its own, by which its process is known where it has no marker. Other test
 * files run beside this one and have sleepers too, whose markers an ordinary user cannot read if they are root's.
 */
const bareSleep = (): string => `sleep 300.${randomInt(1e9)}`

/** Returns the processes that run such a command. */
const sleepersOf = (command: string): number[] =>
  listProcesses()
    .map(({ pid }) => pid)
    .filter((pid) => commandOf(pid) === command)

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    // It has ended meanwhile.
    return ''
  }
}
