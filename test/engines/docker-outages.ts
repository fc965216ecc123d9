import { describe, expect, test } from 'bun:test'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { DockerClient } from '../../src/compute/docker/client.ts'
import type { ServerHandle } from '../../src/compute/driver.ts'
import type { EngineDriver } from '../../src/compute/engine/engine-driver.ts'
import type { ExecExit, Sandbox } from '../../src/compute/sandbox.ts'
import { WorkspaceError } from '../../src/compute/workspace.ts'
import { messageOf } from '../../src/runtime/error-info.ts'
import { LIMITS, type Result, run, until } from '../compute/bench.ts'
import type { EngineRig } from '../support/engines/engine-rig.ts'
import { everyCombination } from '../support/thorough.ts'
import { dataDirectories, ownerOf } from './docker-faults.ts'

/** Prints 100,000 bytes ten times a second, and notes each time in the file `ran`. */
const printing = (times: number): string =>
  `for i in $(seq ${times}); do echo $i >> ran; head -c 100000 /dev/zero | tr "\\0" x; sleep 0.1; done`

/** A server, and a command on it that prints while its engine is away. */
class Printing {
  bytes = 0
  readonly exit: Promise<ExecExit>

  static async on(driver: EngineDriver, times: number): Promise<Printing> {
    const handle = await driver.create('srv_a')
    return new Printing(handle, await driver.start('srv_a', handle, LIMITS), times)
  }

  private constructor(
    readonly handle: ServerHandle,
    readonly sandbox: Sandbox,
    private readonly times: number,
  ) {
    const onOutput = (_: unknown, { length }: Uint8Array): void => {
      this.bytes += length
    }
    this.exit = sandbox.exec({ command: printing(times), timeoutMs: null, onOutput }).exit
  }

  /** Resolves when so many bytes have arrived. */
  atLeast(bytes: number): Promise<void> {
    return until('output', () => this.bytes >= bytes, 30_000)
  }

  /** Fails if a byte is missing, or something ran twice. */
  async expectWhole(): Promise<void> {
    const { exitCode } = await this.exit
    expect({ exitCode, bytes: this.bytes }).toEqual({ exitCode: 0, bytes: this.times * 100_000 })
    const { stdout } = await run(this.sandbox, 'sort ran | uniq | wc -l; wc -l < ran')
    expect(stdout).toBe(`${this.times}\n${this.times}\n`)
    await this.sandbox.stop()
  }
}

/** Why an operation fails. */
const failure = (operation: Promise<unknown>): Promise<string> =>
  operation.then(() => 'it succeeded', messageOf)

/** What passes: all, requests without their responses, or nothing. Connections stay in each case. */
type Passing = 'all' | 'requests' | 'nothing'

/** A socket that leads to an engine's. */
class Relay implements AsyncDisposable {
  readonly #server: Server
  readonly #wires: { from: Socket; to: Socket; passing: Passing }[] = []
  #next: Passing = 'all'

  constructor(path: string, target: string) {
    this.#server = createServer((from) => {
      const to = connect(target)
      const wire = { from, to, passing: this.#next }
      this.#wires.push(wire)
      from.on('data', (chunk) => wire.passing === 'nothing' || to.write(chunk))
      to.on('data', (chunk) => wire.passing === 'all' && from.write(chunk))
      for (const socket of [from, to]) {
        socket.on('error', () => {})
        socket.on('close', () => wire.passing === 'nothing' || [from, to].map((end) => end.destroy()))
      }
    }).listen(path)
  }

  /** Sets what passes on the connections that there are, and on later ones. */
  let(passing: Passing, next = passing): void {
    for (const wire of this.#wires) wire.passing = passing
    this.#next = next
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { from, to } of this.#wires) for (const socket of [from, to]) socket.destroy()
    this.#server.close()
  }
}

/** Does something when it has been asked to make a container. */
class WatchedClient extends DockerClient {
  onCreate = (): void => {}

  override json(...request: Parameters<DockerClient['json']>): Promise<unknown> {
    if (request[1] === '/containers/create') this.onCreate()
    return super.json(...request)
  }
}

/** What happens while an engine is away, cannot write, or is reached no more. */
export function engineOutageTests(rig: () => EngineRig): void {
  describe('an engine', () => {
    const newDirectory = dataDirectories()
    const remote = (leaseMs = 60_000): EngineDriver =>
      rig().driver(newDirectory(), { isLocal: false, leaseMs })

    /** The containers of a data directory, those that do not run too. */
    const containersOf = async (dataDir: string): Promise<unknown[]> => {
      const filters = JSON.stringify({ label: [`berth.owner=${ownerOf(dataDir)}`] })
      return (await rig()
        .client()
        .json('GET', '/containers/json', { query: { all: '1', filters } })) as unknown[]
    }

    /** Runs something while the engine is stopped. */
    const whileStopped = async (act: () => Promise<void>): Promise<void> => {
      rig().signal('SIGSTOP')
      try {
        await act()
      } finally {
        rig().signal('SIGCONT')
      }
    }

    test('that is stopped for 5 seconds: output goes on, and commands run once', async () => {
      const printing = await Printing.on(remote(), 60)
      await printing.atLeast(500_000)
      let asked: Promise<Result> | null = null
      await whileStopped(async () => {
        asked = run(printing.sandbox, 'echo once >> once; cat once')
        await Bun.sleep(5_000)
      })
      expect(await asked).toMatchObject({ exitCode: 0, stdout: 'once\n' })
      await printing.expectWhole()
    }, 60_000)

    test.skipIf(!everyCombination)(
      'that is stopped for 60 seconds: callers are told why, and all goes on afterwards',
      async () => {
        const driver = remote(90_000)
        const printing = await Printing.on(driver, 100)
        await printing.atLeast(500_000)
        await whileStopped(async () => {
          const over = Bun.sleep(60_000)
          await until('the cause', () => driver.placement(printing.handle).cause !== null, 40_000)
          expect(await failure(run(printing.sandbox, 'echo never >> never'))).toContain(
            'The server cannot be reached at present.',
          )
          await over
          expect(driver.placement(printing.handle).cause).toMatch(/does not respond\. Restart the engine/)
        })
        await printing.expectWhole()
      },
      180_000,
    )

    test('that is stopped for good: the server is given up after its lease, and starts anew with its files', async () => {
      const dataDir = newDirectory()
      const driver = rig().driver(dataDir, { isLocal: false, leaseMs: 3_000 })
      const handle = await driver.create('srv_a')
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      await run(sandbox, 'echo kept > file')
      await whileStopped(async () => {
        expect(await failure(driver.create('srv_b'))).toContain(
          'it accepts connections and does not respond. Restart the engine',
        )
        expect((await sandbox.exited).reason).toContain('does not respond')
        // In there, process 1 has noticed it too.
        await until('the processes to end', () => rig().pids.length === 0, 30_000)
      })
      const again = await driver.start('srv_a', handle, LIMITS)
      expect((await run(again, 'cat file')).stdout).toBe('kept\n')
      expect(await rig().containers(ownerOf(dataDir))).toHaveLength(1)
      await again.stop()
    }, 90_000)

    test('that is cut off as it makes a container: that one is gone before the server starts again', async () => {
      const dataDir = newDirectory()
      const path = join(dataDir, 'relay.sock')
      await using relay = new Relay(path, rig().socket)
      const client = new WatchedClient({ kind: 'unix', path }, 'The engine behind the relay', null)
      const driver = rig().driver(dataDir, { client })
      const handle = await driver.create('srv_a')
      client.onCreate = () => relay.let('requests')
      const refused = failure(driver.start('srv_a', handle, LIMITS))
      const made = async (): Promise<number> => (await containersOf(dataDir)).length
      await until('the container', async () => (await made()) === 1)
      relay.let('nothing')
      expect(await refused).toContain('Restart the engine')
      expect(await made()).toBe(1)
      client.onCreate = () => {}
      relay.let('nothing', 'all')
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      expect(await made()).toBe(1)
      await sandbox.stop()
      await driver.destroy(handle)
      expect((await rig().volumes()).filter((name) => name.startsWith(handle.storage))).toEqual([])
    }, 60_000)

    test('at a local socket that is stopped for 5 seconds: commands go on', async () => {
      const printing = await Printing.on(rig().driver(newDirectory()), 60)
      await printing.atLeast(500_000)
      await whileStopped(() => Bun.sleep(5_000))
      await printing.expectWhole()
    }, 60_000)

    test('whose socket is gone: carriers go on, and cut ones once it is back', async () => {
      const driver = remote()
      const printing = await Printing.on(driver, 60)
      await printing.atLeast(500_000)
      const { socket } = rig()
      renameSync(socket, `${socket}.away`)
      try {
        await printing.atLeast(1_000_000)
        rig().killCarriers()
        await until('the cause', () => driver.placement(printing.handle).cause !== null)
        const sentence =
          /^The server cannot be reached at present\. .* its socket does not exist\. Start the engine/
        expect(await failure(run(printing.sandbox, 'true'))).toMatch(sentence)
        await expect(driver.create('srv_b')).rejects.toThrow('its socket does not exist. Start the engine')
      } finally {
        renameSync(`${socket}.away`, socket)
      }
      await printing.expectWhole()
    }, 60_000)

    test('behind a wire that is cut without a close: output arrives whole', async () => {
      const dataDir = newDirectory()
      const path = join(dataDir, 'relay.sock')
      await using relay = new Relay(path, rig().socket)
      const client = new DockerClient({ kind: 'unix', path }, 'The engine behind the relay', null)
      const printing = await Printing.on(rig().driver(dataDir, { isLocal: false, client }), 60)
      await printing.atLeast(500_000)
      relay.let('nothing', 'all')
      await printing.expectWhole()
    }, 90_000)

    test('that keeps containers (live-restore) is killed: commands go on over the next carriers', async () => {
      await rig().endDaemon('SIGTERM')
      await rig().startDaemon('data', ['--live-restore'])
      try {
        const printing = await Printing.on(remote(), 100)
        await printing.atLeast(500_000)
        await rig().endDaemon('SIGKILL')
        await rig().startDaemon('data', ['--live-restore'])
        await printing.expectWhole()
      } finally {
        await rig().endDaemon('SIGTERM')
        await rig().startDaemon()
      }
    }, 120_000)

    test('that somebody else asks to remove a container too: the next start finds none', async () => {
      const dataDir = newDirectory()
      const driver = rig().driver(dataDir)
      const handle = await driver.create('srv_a')
      const sandbox = await driver.start('srv_a', handle, LIMITS)
      const [container] = await rig().containers(ownerOf(dataDir))
      const removals = [1, 2, 3].map(() =>
        rig()
          .client()
          .send('DELETE', `/containers/${container}`, { query: { force: '1' } })
          .catch(() => {}),
      )
      await sandbox.stop()
      const again = await driver.start('srv_a', handle, LIMITS)
      await Promise.all(removals)
      expect((await run(again, 'echo well')).stdout).toBe('well\n')
      expect(await rig().containers(ownerOf(dataDir))).toHaveLength(1)
      await again.stop()
      await driver.destroy(handle)
    }, 60_000)

    test('whose disk is full: a write says so, and what needs no room goes on', async () => {
      const data = join(rig().directory, 'small')
      await rig().endDaemon('SIGTERM')
      mkdirSync(data)
      await rig().inside(['mount', '-t', 'tmpfs', '-o', 'size=1g', 'small', data]).exited
      await rig().startDaemon('small')
      try {
        await rig().makeImage()
        const driver = rig().driver(newDirectory())
        const handle = await driver.create('srv_a')
        const sandbox = await driver.start('srv_a', handle, LIMITS)
        await run(sandbox, 'echo kept > file')
        const fill = `cat /dev/zero > ${data}/filler; test -s ${data}/filler`
        expect(await rig().inside(['sh', '-c', fill]).exited).toBe(0)
        const written = driver.workspace(handle).write('more', Buffer.alloc(1_000_000))
        await expect(written).rejects.toBeInstanceOf(WorkspaceError)
        await expect(written).rejects.toThrow(
          'The disk is full: "more" was not written. Free space on the machine',
        )
        expect((await run(sandbox, 'head -c 1000000 /dev/zero > more')).stderr).toContain('No space left')
        expect((await run(sandbox, 'cat file')).stdout).toBe('kept\n')
        const other = await driver.create('srv_b')
        const refused = driver.start('srv_b', other, LIMITS)
        await expect(refused).rejects.toThrow('because its disk is full. Free space there')
        await rig().inside(['rm', `${data}/filler`]).exited
        await driver.workspace(handle).write('more', Buffer.alloc(1_000_000))
        await (await driver.start('srv_b', other, LIMITS)).stop()
        await driver.destroy(other)
        await sandbox.stop()
        await driver.destroy(handle)
      } finally {
        await rig().endDaemon('SIGTERM')
        await rig().inside(['umount', '-l', data]).exited
        rmSync(data, { recursive: true, force: true })
        await rig().startDaemon()
      }
    }, 180_000)
  })
}
