import { afterEach, describe, expect, test } from 'bun:test'
import { NameServer } from '../../../src/compute/local/network/outbound/name-server.ts'
import type { OutboundSettings } from '../../../src/compute/sandbox.ts'
import { endWorlds, hasWorlds, openWorld } from './open-world.ts'

const PUBLIC: OutboundSettings = { mode: 'public', hosts: [] }

afterEach(endWorlds)

/** A command that looks names up at a time, and says how many were not found. */
const lookUp = (count: number): string =>
  `export RES_OPTIONS=timeout:10; for n in $(seq ${count}); do { getent ahosts n$n.example >/dev/null || echo none; } & done; wait`

describe.skipIf(!hasWorlds)('names that a server looks up', () => {
  test('leave calls on files as they are while the name server of the machine is silent', async () => {
    const world = await openWorld()
    await world.step({ do: 'open a mute name server' })
    await world.step({
      do: 'configure',
      file: 'resolv.conf',
      text: 'nameserver 127.0.0.9\noptions timeout:5 attempts:2\n',
    })
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    await world.step({ do: 'begin', command: lookUp(20) })
    await world.step({ do: 'await questions', names: 2 })
    // By getaddrinfo, the names would take both threads of Bun's pool, one after the other.
    expect(await world.step({ do: 'read a file' })).toBe(true)
    expect(await world.step({ do: 'await questions', names: 20 })).toBe(20)
  }, 120_000)

  test('are looked up by the name servers and hosts that the machine has now', async () => {
    const world = await openWorld()
    await world.step({ do: 'open a mute name server' })
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    const first = 'getent ahostsv4 example.test.example | cut -d" " -f1 | sort -u'
    expect(await world.run(first)).toBe('93.184.216.34')
    await world.step({ do: 'configure', file: 'resolv.conf', text: 'nameserver 127.0.0.9\n' })
    await world.step({ do: 'begin', command: 'getent ahostsv4 new.example' })
    await world.step({ do: 'await questions', names: 1 })
    await world.step({
      do: 'configure',
      file: 'hosts',
      text: '127.0.0.1 localhost\n93.184.216.35 Moved.example other # moved.example\n93.184.216.36 moved.example\n',
    })
    const second = 'getent ahostsv4 moved.example | cut -d" " -f1 | sort -u'
    expect(await world.run(second)).toBe('93.184.216.35\n93.184.216.36')
  }, 120_000)

  test('are searched in the domains of the machine by the proxy', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'proxy' })
    expect(await world.run('curl -sS -m 5 http://example/')).toContain('no host with the name example')
    await world.step({
      do: 'configure',
      file: 'resolv.conf',
      text: 'nameserver 93.184.216.53\nsearch elsewhere.example test.example\n',
    })
    expect(await world.get('http://example/')).toBe('93.184.216.34')
  }, 120_000)

  test('fail at once past a limit', async () => {
    const world = await openWorld()
    await world.step({ do: 'open a mute name server' })
    await world.step({ do: 'configure', file: 'resolv.conf', text: 'nameserver 127.0.0.9\n' })
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    // Asks for 400 names, a few at a time, since datagrams get lost in a full buffer.
    const client = `let failed = 0
      const s = await Bun.udpSocket({ connect: { hostname: "93.184.216.53", port: 53 }, socket: { data(_, d) {
        if ((d[3] & 15) === 2 && ++failed === 50) { console.log("failed at once"); process.exit() } } } })
      for (let n = 0; n < 400; n++) {
        s.send(Buffer.concat([Buffer.from([n >> 8, n & 255, 1,0,0,1,0,0,0,0,0,0,4]),
          Buffer.from(String(n).padStart(4, "n")), Buffer.from([0,0,1,0,1])]))
        if (n % 20 === 0) await Bun.sleep(10)
      }
      setTimeout(() => { console.log("failed only", failed); process.exit() }, 3000)`
    expect(await world.run(`${process.execPath} -e '${client}'`)).toBe('failed at once')
  }, 120_000)
})

test('a server can have berth remember few names of an address, the newest ones', async () => {
  const resolver = { lookUp: async () => ['93.184.216.34'], servers: async () => [] }
  const server = new NameServer({ refusal: () => null }, resolver, () => null)
  for (let n = 1; n <= 300; n += 1) await server.resolve(`n${n}.example`, { search: false })
  await server.resolve('n250.example', { search: false })
  const names = server.namesOf('93.184.216.34')
  expect([names.length, names.at(-1), names.includes('n200.example')]).toEqual([100, 'n250.example', false])
})
