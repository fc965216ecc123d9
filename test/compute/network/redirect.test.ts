import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { run, until } from '../bench.ts'
import { NetworkBench, networkIsPossible, SAYING } from './network-bench.ts'

const curl = (url: string): string => `curl --silent --max-time 5 --http0.9 ${url}`

describe.skipIf(!(await networkIsPossible()))('what leaves a server’s own network', () => {
  test('goes to berth, by IPv4 and IPv6, which decides about it; names are asked of berth', async () => {
    await using bench = new NetworkBench()
    const { network, sandbox } = await bench.start('srv_a')
    expect(network.unredirected).toBeNull()
    const destinations = ['203.0.113.9:80', '[2001:db8:9::9]:8080']
    for (const destination of destinations) await run(sandbox, curl(`"http://${destination}/"`))
    // The relay, on a thread of its own, reports a refusal after it has closed the connection.
    const refused = () => sandbox.outboundControl?.refused ?? []
    await until('both are refused', () => refused().length >= destinations.length)
    expect(refused().map(({ destination }) => destination)).toEqual(destinations)
    expect((await run(sandbox, 'getent ahostsv4 app.localhost; cat /etc/resolv.conf')).stdout).toMatch(
      /^127\.0\.0\.1 [\s\S]*^nameserver 192\.0\.0\.8$/m,
    )
  })

  test('goes nowhere by itself: not to the machine, its loopback, its addresses, or another server', async () => {
    await using bench = new NetworkBench()
    await using machine = await Machine.start()
    const { sandbox } = await bench.start('srv_a')
    const other = await bench.start('srv_b')
    other.sandbox.exec({ command: SAYING(machine.port, 'other', '0.0.0.0'), timeoutMs: null, onOutput() {} })
    await until('the other listens', () => other.ask(machine.port).then(Boolean, () => false))
    for (const host of ['127.0.0.1', '[::1]', '192.0.0.8', machine.address]) {
      const { stdout, exitCode } = await run(sandbox, curl(`http://${host}:${machine.port}/`))
      expect([host, stdout, exitCode === 0]).toEqual([host, '', false])
    }
    // Other protocols are refused at once rather than lost.
    const datagram = `bun -e 'const s = await Bun.udpSocket({}); s.send("x", 443, "9.9.9.9")'`
    expect((await run(sandbox, datagram)).stderr).toContain('EPERM')
  })

  test('finds a service of the machine that is handed in, at the same port', async () => {
    await using machine = await Machine.start()
    await using bench = new NetworkBench({ machinePorts: [machine.port] })
    const { sandbox } = await bench.start('srv_a')
    for (const host of ['127.0.0.1', '[::1]']) {
      expect((await run(sandbox, curl(`http://${host}:${machine.port}/`))).stdout).toBe('machine')
    }
  })

  test('cannot be let through, nor the limits lifted, by a program of the server', async () => {
    await using bench = new NetworkBench()
    const { sandbox } = await bench.start('srv_a')
    const attempts = [
      'nft flush ruleset',
      'ip link add eth9 type dummy',
      'ip route del default',
      'ip addr add 10.9.9.9/24 dev lo',
      'echo 1024 > /proc/sys/net/ipv4/ip_unprivileged_port_start',
      'echo 100000 > /proc/sys/user/max_inotify_instances',
      'nsenter --net=/proc/1/ns/net true',
      'unshare --user --map-root-user --net true',
    ]
    for (const command of attempts) {
      const { exitCode } = await run(sandbox, `PATH=$PATH:/usr/sbin:/sbin; ${command}`)
      expect(`${command}: ${exitCode === 0}`).toBe(`${command}: false`)
    }
  })

  test('leaves programs every port, and a server a share of what inotify watches', async () => {
    await using bench = new NetworkBench()
    const { sandbox } = await bench.start('srv_a')
    const script = `
      const on80 = Bun.listen({ hostname: '0.0.0.0', port: 80, socket: { data() {} } })
      const { dlopen } = require('bun:ffi')
      const { inotify_init, inotify_add_watch } = dlopen('libc.so.6', {
        inotify_init: { args: [], returns: 'int' },
        inotify_add_watch: { args: ['int', 'cstring', 'u32'], returns: 'int' },
      }).symbols
      const paths = Array.from({ length: 4000 }, (_, n) => Buffer.from('/tmp/' + n + '\\0'))
      for (const path of paths) require('fs').writeFileSync(path.subarray(0, -1), '')
      const instances = []
      for (let made = inotify_init(); made >= 0 && instances.length < 200; made = inotify_init()) instances.push(made)
      let watches = 0
      fill: for (const instance of instances) for (const path of paths) {
        if (inotify_add_watch(instance, path, 2) < 0) break fill
        watches++
      }
      console.log(on80.port, instances.length, watches); process.exit()`
    const { stdout } = await run(sandbox, `cat > a.js && bun a.js`, { stdin: Buffer.from(script) })
    const [port, instances, watches] = stdout.split(' ').map(Number)
    expect(port).toBe(80)
    const most = Number(readFileSync('/proc/sys/fs/inotify/max_user_watches', 'latin1'))
    expect(watches).toBe(Math.max(8192, Math.floor(most / 4)))
    expect(instances).toBeGreaterThan(50)
    expect(instances).toBeLessThanOrEqual(64)
  })
})

/** A program of this machine that listens on all its addresses. */
class Machine implements AsyncDisposable {
  readonly #listener: Bun.TCPSocketListener
  /** An address of this machine besides loopback, or loopback's own last one. */
  readonly address: string

  static async start(): Promise<Machine> {
    const listener = Bun.listen({
      hostname: '0.0.0.0',
      port: 0,
      socket: { open: (socket) => void socket.end('machine'), data() {} },
    })
    const all = Object.values(networkInterfaces()).flatMap((some) => some ?? [])
    const found = all.find(({ family, internal }) => family === 'IPv4' && !internal)
    const machine = new Machine(listener, found?.address ?? '127.0.0.2')
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    connect(machine.port, machine.address)
      .on('data', (data) => resolve(String(data)))
      .on('error', reject)
    expect(await promise).toBe('machine')
    return machine
  }

  private constructor(listener: Bun.TCPSocketListener, address: string) {
    this.#listener = listener
    this.address = address
  }

  get port(): number {
    return this.#listener.port
  }

  get url(): string {
    return `http://${this.address}:${this.port}/`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.stop(true)
  }
}
