import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { run } from '../bench.ts'
import { NetworkBench, networkIsPossible } from './network-bench.ts'

const curl = (url: string): string => `curl --silent --max-time 5 --http0.9 ${url}`

describe.skipIf(!(await networkIsPossible()))('what leaves a server’s own network', () => {
  test('comes to berth, by IPv4 and IPv6, and names are asked of berth', async () => {
    await using bench = new NetworkBench()
    const { network, sandbox } = await bench.start('srv_a')
    expect(network.unredirected).toBeNull()
    for (const host of ['127.0.0.1', '::1'] as const) {
      network.listen(65_535, host, { open: (socket) => void socket.end(`berth at ${host}`), data() {} })
    }
    await network.udp(53, '127.0.0.1', {
      data: (from, data, port, address) => void from.send(`heard ${data.toString()}`, port, address),
    })
    const asking = `bun -e 'const s = await Bun.udpSocket({ socket: { data(_, d) { console.log(String(d)); process.exit() } } }); s.send("a name", 53, "9.9.9.9")'`
    expect((await run(sandbox, curl('http://203.0.113.9/'))).stdout).toBe('berth at 127.0.0.1')
    expect((await run(sandbox, curl('"http://[2001:db8:9::9]:8080/"'))).stdout).toBe('berth at ::1')
    expect((await run(sandbox, asking)).stdout).toBe('heard a name\n')
  })

  test('goes nowhere by itself: not to the machine, its addresses, or another server', async () => {
    await using bench = new NetworkBench()
    const machine = Bun.listen({
      hostname: '0.0.0.0',
      port: 0,
      socket: { open: (socket) => void socket.end('machine'), data() {} },
    })
    const { address, answers } = await machineAddress(machine.port)
    try {
      const { sandbox } = await bench.start('srv_a')
      await bench.start('srv_b')
      expect(answers).toBe('machine')
      for (const host of ['127.0.0.1', address]) {
        const { stdout, exitCode } = await run(sandbox, curl(`http://${host}:${machine.port}/`))
        expect([stdout, exitCode]).toEqual(['', 7])
      }
      // Other protocols are refused at once rather than lost.
      const { stderr } = await run(
        sandbox,
        `bun -e 'const s = await Bun.udpSocket({}); s.send("x", 443, "9.9.9.9")'`,
      )
      expect(stderr).toContain('EPERM')
    } finally {
      machine.stop(true)
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

  test('leaves programs every port, and a server a share of the inotify instances', async () => {
    await using bench = new NetworkBench()
    const { sandbox } = await bench.start('srv_a')
    const script = `
      const on80 = Bun.listen({ hostname: '0.0.0.0', port: 80, socket: { data() {} } })
      const fs = require('fs'); let open = 0
      const { dlopen } = require('bun:ffi')
      const { inotify_init } = dlopen('libc.so.6', { inotify_init: { args: [], returns: 'int' } }).symbols
      while (open < 200 && inotify_init() >= 0) open++
      console.log(on80.port, open); process.exit()`
    const { stdout } = await run(sandbox, `cat > a.js && bun a.js`, { stdin: Buffer.from(script) })
    const [port, instances] = stdout.split(' ').map(Number)
    expect(port).toBe(80)
    expect(instances).toBeGreaterThan(50)
    expect(instances).toBeLessThanOrEqual(64)
  })
})

/** An address of this machine besides loopback, or loopback's own last one, and what a listener says to it there. */
async function machineAddress(port: number): Promise<{ address: string; answers: string }> {
  const { networkInterfaces } = await import('node:os')
  const all = Object.values(networkInterfaces()).flatMap((some) => some ?? [])
  const address = all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address ?? '127.0.0.2'
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  connect(port, address)
    .on('data', (data) => resolve(String(data)))
    .on('error', reject)
  return { address, answers: await promise }
}
