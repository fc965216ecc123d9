import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { run, until } from '../bench.ts'
import { NetworkBench, networkIsPossible, SAYING } from './network-bench.ts'

describe.skipIf(!(await networkIsPossible()))('a server’s own network', () => {
  test('has ports of its own: two servers and a program of the machine listen on the same', async () => {
    await using bench = new NetworkBench()
    const machine = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { open: (socket) => void socket.end('machine'), data() {} },
    })
    const { port } = machine
    try {
      const said: string[] = []
      for (const id of ['srv_a', 'srv_b']) {
        const server = await bench.start(id)
        server.sandbox.exec({ command: SAYING(port, id), timeoutMs: null, onOutput() {} })
        await until(`${id} listens`, () => server.ask(port).then(Boolean, () => false))
        said.push(await server.ask(port))
      }
      expect(said).toEqual(['srv_a', 'srv_b'])
    } finally {
      machine.stop(true)
    }
  })

  test('is reached by IPv4 and by IPv6, each with its own ports', async () => {
    await using bench = new NetworkBench()
    const server = await bench.start('srv_a')
    for (const host of ['127.0.0.1', '::1'] as const) {
      server.sandbox.exec({ command: SAYING(3000, host, host), timeoutMs: null, onOutput() {} })
      await until(`${host} listens`, () => server.ask(3000, host).then(Boolean, () => false))
    }
    expect([await server.ask(3000, '127.0.0.1'), await server.ask(3000, '::1')]).toEqual(['127.0.0.1', '::1'])
  })

  test('refuses connections to a port on which nothing listens, a hundred times in a row', async () => {
    await using bench = new NetworkBench()
    const { ask } = await bench.start('srv_a')
    const codes = await Promise.all(
      Array.from({ length: 100 }, () =>
        ask(3000).catch((error: unknown) => Reflect.get(Object(error), 'code')),
      ),
    )
    expect(new Set(codes)).toEqual(new Set(['ECONNREFUSED']))
  })

  test('takes listeners of berth’s, port 80 too, which know their server', async () => {
    await using bench = new NetworkBench()
    for (const id of ['srv_a', 'srv_b']) {
      const { network, sandbox } = await bench.start(id)
      for (const host of ['127.0.0.1', '::1'] as const) {
        network.listen(80, host, {
          open: (socket) => void socket.end(`berth for ${id} at ${host}`),
          data() {},
        })
        const { stdout } = await run(sandbox, READING(80, host))
        expect(stdout).toBe(`berth for ${id} at ${host}`)
      }
      expect(() => network.listen(80, '127.0.0.1', { data() {} })).toThrow('EADDRINUSE')
    }
  })

  test('carries many bytes both ways over a connection', async () => {
    await using bench = new NetworkBench()
    const { network, sandbox } = await bench.start('srv_a')
    const echo = `bun -e 'require("net").createServer((s) => s.pipe(s)).listen(3000, "127.0.0.1")'`
    sandbox.exec({ command: echo, timeoutMs: null, onOutput() {} })
    const sent = new Uint8Array(8 * 2 ** 20).map((_, index) => (index * 31) % 251)
    const hash = new Bun.CryptoHasher('sha1')
    const { promise, resolve } = Promise.withResolvers<void>()
    let [written, received] = [0, 0]
    const write = (socket: Bun.Socket<null>): void => {
      written += Math.max(socket.write(sent.subarray(written)), 0)
    }
    const connect = (): Promise<unknown> =>
      network.connect(3000, '127.0.0.1', {
        data: null,
        socket: {
          open: write,
          drain: write,
          data(socket, chunk) {
            hash.update(chunk)
            received += chunk.length
            if (received === sent.length) socket.end()
          },
          close: () => resolve(),
        },
      })
    await until('the app listens', () =>
      connect().then(
        () => true,
        () => false,
      ),
    )
    await promise
    expect(hash.digest('hex')).toBe(new Bun.CryptoHasher('sha1').update(sent).digest('hex'))
  })

  test('uses the socket of an ended connection again, with nothing left of that in it', async () => {
    await using bench = new NetworkBench()
    const server = await bench.start('srv_a')
    const { network } = server
    // Says a word at once, and another after the end, which the next connection must not get.
    const app = `bun -e 'require("net").createServer({ allowHalfOpen: true }, (s) => { s.write("hello"); s.on("end", () => s.end("late")) }).listen(3000, "127.0.0.1")'`
    server.sandbox.exec({ command: app, timeoutMs: null, onOutput() {} })
    const open = async (): Promise<{ inode: string; said: () => string; socket: Bun.Socket<null> }> => {
      let said = ''
      const { promise: greeted, resolve } = Promise.withResolvers<void>()
      const socket = await network.connect(3000, '127.0.0.1', {
        data: null,
        socket: {
          data(_, chunk) {
            said += chunk.toString()
            resolve()
          },
        },
      })
      await greeted
      return { inode: inodeOf(socket), said: () => said, socket }
    }
    await until('the app listens', () =>
      open().then(
        ({ socket }) => !socket.end(),
        () => false,
      ),
    )
    const before = openSockets()
    let last = ''
    await until('a socket is used again', async () => {
      const { inode, said, socket } = await open()
      expect(said()).toBe('hello')
      const isUsedAgain = inode === last
      last = inode
      network.end(socket, '127.0.0.1')
      return isUsedAgain
    })
    await until('no socket is kept', () => openSockets() <= before)
  })

  test('ends a connection for good, also where the app goes on with it', async () => {
    await using bench = new NetworkBench()
    const server = await bench.start('srv_a')
    const { network } = server
    // Sends without an end, and says on its standard output when it cannot any more. On a busy machine it learns that it is
    // cut off before it has seen the end.
    const app = `bun -e 'require("net").createServer({ allowHalfOpen: true }, (s) => { const t = setInterval(() => s.write("x"), 1); s.on("error", () => {}); s.on("end", () => console.log("ended")); s.on("close", () => { clearInterval(t); console.log("closed") }) }).listen(3000, "127.0.0.1", () => console.log("listens"))'`
    let output = ''
    const onOutput = (_: unknown, bytes: Uint8Array): void => {
      output += new TextDecoder().decode(bytes)
    }
    server.sandbox.exec({ command: app, timeoutMs: null, onOutput })
    await until('the app listens', () => output.includes('listens'))
    const before = openSockets()
    const socket = await network.connect(3000, '127.0.0.1', { data: null, socket: { data() {} } })
    network.end(socket, '127.0.0.1')
    await until('the app is cut off', () => output.includes('closed'))
    await until('no socket is kept', () => openSockets() <= before)
  })

  test('resets an app that waits for its bytes to be read: it would not see the end', async () => {
    await using bench = new NetworkBench()
    const server = await bench.start('srv_a')
    const { network } = server
    // Writes until nothing more is taken, and says what ends that.
    const app = `bun -e 'require("net").createServer((s) => { s.on("error", (e) => console.log(e.code)); s.on("end", () => console.log("ended")); s.write(Buffer.alloc(1e8)); setTimeout(() => console.log("written"), 100) }).listen(3000, "127.0.0.1", () => console.log("listens"))'`
    let output = ''
    const onOutput = (_: unknown, bytes: Uint8Array): void => {
      output += new TextDecoder().decode(bytes)
    }
    server.sandbox.exec({ command: app, timeoutMs: null, onOutput })
    await until('the app listens', () => output.includes('listens'))
    const before = openSockets()
    const socket = await network.connect(3000, '127.0.0.1', { data: null, socket: { data() {} } })
    socket.pause()
    await until('the app has written', () => output.includes('written'))
    socket.resume()
    network.end(socket, '127.0.0.1')
    await until('it is notified', () => output.includes('written\nECONNRESET'))
    await until('no socket is kept', () => openSockets() <= before)
  })

  test('still lets berth in while a program floods the port by which sockets are made', async () => {
    await using bench = new NetworkBench()
    const server = await bench.start('srv_a')
    server.sandbox.exec({ command: SAYING(3000, 'hello'), timeoutMs: null, onOutput() {} })
    await until('the app listens', () => server.ask(3000).then(Boolean, () => false))
    const flood = `bun -e 'const net = require("net"); let open = 0; for (let i = 0; i < 700; i++) net.connect(65534, "127.0.0.1", () => { if (++open === 300) console.log("flooding") }).on("error", () => {}); setTimeout(() => {}, 60000)'`
    const { promise: flooding, resolve } = Promise.withResolvers<void>()
    server.sandbox.exec({ command: flood, timeoutMs: null, onOutput: () => resolve() })
    await flooding
    const said = await Promise.all(Array.from({ length: 50 }, () => server.ask(3000)))
    expect(new Set(said)).toEqual(new Set(['hello']))
  })

  test('is gone with its server, stopped or killed: no socket of it is open any more', async () => {
    await using bench = new NetworkBench()
    await (await bench.start('srv_first')).sandbox.stop()
    const before = openSockets()
    for (const end of ['stop', 'crash'] as const) {
      const { sandbox, network } = await bench.start(`srv_${end}`)
      network.listen(80, '127.0.0.1', { data() {} })
      expect(openSockets()).toBeGreaterThan(before)
      if (end === 'stop') await sandbox.stop()
      else sandbox.faultInjection.crash()
      await sandbox.exited
      await until('every socket is closed', () => openSockets() <= before)
      expect(() => network.listen(81, '127.0.0.1', { data() {} })).toThrow('not running')
    }
  })

  test('is gone after kill -9 of berth: no process is in it, and none holds it open', async () => {
    await using bench = new NetworkBench()
    const host = join(import.meta.dir, '../conformance/host.ts')
    const command =
      'bun -e "Bun.listen({ hostname: String(), port: 80, socket: {} })" & readlink /proc/self/ns/net > name; wait'
    const child = Bun.spawn([process.execPath, host, 'bubblewrap', bench.dataDir, command], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const file = join(bench.dataDir, 'servers/srv_host/workspace/name')
    await until('its network has a name', () => existsSync(file) && readFileSync(file, 'utf8').length > 0)
    const name = readFileSync(file, 'utf8').trim()
    expect(holdersOf(name).length).toBeGreaterThan(0)
    child.kill('SIGKILL')
    await child.exited
    await until('nobody holds it', () => holdersOf(name).length === 0, 5_000)
  })
})

/** The processes that are in a network, or have it open; `name` is as /proc/PID/ns/net leads to it. */
function holdersOf(name: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d/.test(pid)) return false
    const leadsThere = (path: string): boolean => {
      try {
        return readlinkSync(path) === name
      } catch {
        return false
      }
    }
    if (leadsThere(`/proc/${pid}/ns/net`)) return true
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => leadsThere(`/proc/${pid}/fd/${fd}`))
    } catch {
      return false
    }
  })
}

/** A command that prints what a port says. */
const READING = (port: number, host: string): string =>
  `bun -e 'require("net").connect(${port}, "${host}").pipe(process.stdout)'`

/** How many sockets this process has open. */
function openSockets(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
    } catch {
      return false
    }
  }).length
}

/** The number of a connection's socket, which no other socket has while it exists. */
const inodeOf = (socket: Bun.Socket<null>): string =>
  readlinkSync(`/proc/self/fd/${Reflect.get(socket, 'fd')}`)
