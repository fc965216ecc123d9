import { describe, expect, test } from 'bun:test'
import { EXECUTABLE_PATH } from '../../../src/compute/engine/engine.ts'
import {
  ComputeError,
  DialRefused,
  type Execution,
  type LoopbackAddress,
  type LoopbackHost,
  type Sandbox,
} from '../../../src/compute/sandbox.ts'
import type { Isolation } from '../../../src/config/config.ts'
import { ByteStream } from '../../../src/hosting/sites/http1/byte-stream.ts'
import { freePort } from '../../support/ports.ts'
import { Bench, isEngine, run, SELF, type Subject, until } from '../bench.ts'
import { sharedServer } from './shared-server.ts'

/** Commands that run until they get a signal: servers of apps. */
export function longTests(name: Subject): void {
  describe('a command without a timeout', () => {
    test('delivers what it prints while it runs', async () => {
      await using bench = new Bench(name)
      const { execution, output } = begin(await bench.start(), 'for n in 1 2 3; do echo $n; done; sleep 300')
      await until('the output', () => output.text === '1\n2\n3\n')
      execution.cancel()
      expect(await execution.exit).toMatchObject({ exitCode: 143, timedOut: false })
    })

    test('that prints without end holds no more memory the longer it does', async () => {
      await using bench = new Bench(name)
      let received = 0
      const { exit, cancel } = (await bench.start()).exec({
        command: 'yes',
        timeoutMs: null,
        onOutput(_, data) {
          received += data.length
        },
      })
      await until('output', () => received > 2 ** 25, 30_000)
      Bun.gc(true)
      const before = process.memoryUsage.rss()
      await until('much more output', () => received > 2 ** 27, 30_000)
      Bun.gc(true)
      expect(process.memoryUsage.rss() - before).toBeLessThan(2 ** 26)
      cancel()
      await exit
    })

    test('has the grace to end that it is given', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const command = "trap 'sleep 1.3; echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done"
      const { execution, output } = begin(sandbox, command)
      await until('its trap', () => output.text === 'up\n')
      execution.cancel(10_000)
      expect(await execution.exit).toMatchObject({ exitCode: 9 })
      expect(output.text).toBe('up\nbye\n')
    })

    test('loses its grace when it is cancelled again without', async () => {
      await using bench = new Bench(name)
      const { execution, output } = begin(await bench.start(), STUBBORN)
      await until('its trap', () => output.text === 'up\n')
      const began = performance.now()
      execution.cancel(30_000)
      execution.cancel(0)
      expect(await execution.exit).toMatchObject({ exitCode: 137 })
      expect(performance.now() - began).toBeLessThan(20_000)
    })

    test('takes along what it left in the background, where that is wanted', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const command = 'sleep 300 & setsid -f sleep 300; exit 4'
      expect(await run(sandbox, command, { background: 'ends' })).toMatchObject({ exitCode: 4 })
      expect(await bench.commands()).toEqual([])
    })
  })
}

/** Which ports of a command are found. */
export function portTests(name: Subject): void {
  describe('ports', () => {
    const server = sharedServer(name)

    test.each([
      ['127.0.0.1', ['127.0.0.1']],
      ['0.0.0.0', ['127.0.0.1']],
      ['::1', ['::1']],
      ['::', ['127.0.0.1', '::1']],
    ])('of a server on %s are found', async (hostname, hosts) => {
      const { execution, port } = await listen(name, server(), hostname)
      expect((await execution.activity()).listening).toEqual(
        hosts.map((host) => ({ host, port }) as LoopbackAddress),
      )
      execution.cancel(0)
      await execution.exit
      expect((await execution.activity()).listening).toEqual([])
    })

    test('are those of the command’s own processes, children in other sessions too', async () => {
      const sandbox = server()
      const first = await listen(name, sandbox, '127.0.0.1', 'setsid -w')
      const second = await listen(name, sandbox, '127.0.0.1')
      const idle = begin(sandbox, 'sleep 300').execution
      expect((await first.execution.activity()).listening).toEqual([{ host: '127.0.0.1', port: first.port }])
      expect((await second.execution.activity()).listening).toEqual([
        { host: '127.0.0.1', port: second.port },
      ])
      expect((await idle.activity()).listening).toEqual([])
    })

    test('are dialed: bytes pass both ways, whatever the size, until either side closes', async () => {
      const sandbox = server()
      const reversed = `import socket; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept(); n = int(c.recv(8)); d = bytearray()
    while len(d) < n: d += c.recv(65536)
    c.sendall(d[::-1]); c.close()`
      const { output } = begin(sandbox, `python3 -c '${reversed}'`)
      await until('it listens', () => output.text.endsWith('\n'))
      const port = Number(output.text)
      for (const size of [1, 5_000_000]) {
        const sent = Buffer.alloc(size, 'abc')
        const { connection, received, end } = await dialed(sandbox, port)
        connection.send(Buffer.concat([Buffer.from(`${size}`.padStart(8)), sent]))
        await end
        expect(Buffer.concat(received).equals(sent.reverse())).toBe(true)
      }
      const { connection, end } = await dialed(sandbox, port)
      connection.close()
      await end
    })

    test('are dialed, and send no more while the caller pauses', async () => {
      const sandbox = server()
      const sends = `import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print(s.getsockname()[1], flush=True)
c, _ = s.accept(); c.sendall(bytes(5000000)); c.close()`
      const { output } = begin(sandbox, `python3 -c '${sends}'`)
      await until('it listens', () => output.text.endsWith('\n'))
      const { connection, received, end } = await dialed(sandbox, Number(output.text))
      const size = (): number => received.reduce((sum, { length }) => sum + length, 0)
      connection.pause()
      await Bun.sleep(50)
      const before = size()
      await Bun.sleep(200)
      expect(size()).toBe(before)
      expect(before).toBeLessThan(5_000_000)
      connection.resume()
      await end
      expect(size()).toBe(5_000_000)
    })

    test('on which nothing listens refuse, as do all of a server that was stopped', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const { execution, port } = await listen(name, sandbox, '127.0.0.1')
      await (await dialed(sandbox, port)).connection.close()
      await expect(dialed(sandbox, port, '::1')).rejects.toBeInstanceOf(DialRefused)
      execution.cancel(0)
      await execution.exit
      // Its processes end a little after their shell.
      await until('the refusal', () =>
        dialed(sandbox, port).then(
          ({ connection }) => {
            connection.close()
            return false
          },
          (error) => error instanceof DialRefused,
        ),
      )
      await sandbox.stop()
      await expect(dialed(sandbox, port)).rejects.toBeInstanceOf(ComputeError)
    })

    test('that are for a debugger, as the variables of a process say, are marked', async () => {
      const port = freePort()
      const script = `import socket, time
sockets = [socket.create_server(("127.0.0.1", port)) for port in (${port}, 0)]
print(sockets[1].getsockname()[1], flush=True); time.sleep(300)`
      const { execution, output } = begin(
        server(),
        `JAVA_TOOL_OPTIONS=-agentlib:jdwp=transport=dt_socket,server=y,address=*:${port} python3 -c '${script}'`,
      )
      await until('it listens', () => output.text.endsWith('\n'))
      const { listening } = await execution.activity()
      expect(listening).toContainEqual({ host: '127.0.0.1', port, isDebugger: true })
      expect(listening).toContainEqual({ host: '127.0.0.1', port: Number(output.text) })
      execution.cancel(0)
      await execution.exit
    })

    test('are listed with the processor time of the processes and of their ended children', async () => {
      const work = 'n=0; while [ $n -lt 50000 ]; do n=$((n+1)); done'
      const { execution, output } = begin(server(), `sh -c '${work}'; echo done; sleep 300`)
      await until('the work', () => output.text === 'done\n')
      const { cpuMs } = await execution.activity()
      expect(cpuMs).toBeGreaterThan(10)
      await Bun.sleep(100)
      expect((await execution.activity()).cpuMs - cpuMs).toBeLessThan(50)
      execution.cancel(0)
      await execution.exit
      expect(await execution.activity()).toEqual({ listening: [], cpuMs: 0 })
    })

    test('that cannot be reached on 127.0.0.1 are left out', async () => {
      const { execution } = await listen(name, server(), '127.0.0.2')
      expect((await execution.activity()).listening).toEqual([])
    })
  })
}

/** The ports of servers that may share this machine's network. */
export function machinePortTests(name: Isolation): void {
  describe('ports', () => {
    test('are left out on an address where another program answers', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      // A program of the server itself, or of the machine if they share the network.
      using machine =
        sandbox.network === 'own'
          ? null
          : Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
      const port = machine?.port ?? (await listen(name, sandbox, '127.0.0.1')).port
      const script = `import socket, time; s = socket.socket(socket.AF_INET6); s.setsockopt(41, 26, 1); s.bind(("::", ${port})); s.listen(); print("up", flush=True); time.sleep(300)`
      const { execution, output } = begin(sandbox, `python3 -c '${script}'`)
      await until('it listens', () => output.text === 'up\n')
      expect((await execution.activity()).listening).toEqual([{ host: '::1', port }])
    })
  })
}

/** Ends by SIGKILL alone. */
const STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.1; done"

/** Opens a connection and collects what comes; `end` resolves when it has closed. */
async function dialed(sandbox: Sandbox, port: number, host: LoopbackHost = '127.0.0.1') {
  const received: Buffer[] = []
  const end = Promise.withResolvers<void>()
  const stream = new ByteStream()
  const connection = await sandbox.dial(port, host, {
    opened: (opened) => stream.opened(opened),
    data: (chunk) => void received.push(chunk),
    drain: () => stream.drain(),
    closed: () => end.resolve(),
  })
  return {
    received,
    end: end.promise,
    connection: {
      send: (bytes: Buffer) => stream.write(Buffer.from(bytes)),
      close: () => connection.end(),
      pause: () => connection.pause(),
      resume: () => connection.resume(),
    },
  }
}

function begin(sandbox: Sandbox, command: string): { execution: Execution; output: { text: string } } {
  const output = { text: '' }
  const execution = sandbox.exec({
    command,
    timeoutMs: null,
    onOutput(stream, data) {
      if (stream === 'stdout') output.text += new TextDecoder().decode(data)
    },
  })
  return { execution, output }
}

/** Starts a server on a free port; resolves when it listens. */
async function listen(
  name: Subject,
  sandbox: Sandbox,
  hostname: string,
  prefix = '',
): Promise<{ execution: Execution; port: number }> {
  const program = isEngine(name) ? EXECUTABLE_PATH : name === 'bubblewrap' ? '/berth' : SELF.argv[0]
  const script = `console.log(Bun.listen({ hostname: "${hostname}", port: 0, socket: { data() {} } }).port)`
  const { execution, output } = begin(sandbox, `BUN_BE_BUN=1 ${prefix} ${program} -e '${script}'`)
  await until('a port', () => output.text.endsWith('\n'))
  return { execution, port: Number(output.text) }
}
