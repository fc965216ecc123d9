import { afterEach, describe, expect, test } from 'bun:test'
import { ClosingResponse } from '../../../src/compute/local/network/outbound/closing-response.ts'
import { ReceivedBytes } from '../../../src/compute/local/network/outbound/received-bytes.ts'
import type { OutboundSettings } from '../../../src/compute/sandbox.ts'
import { NAME_SERVER } from './internet.ts'
import { endWorlds, hasWorlds, openWorld } from './open-world.ts'

const PUBLIC: OutboundSettings = { mode: 'public', hosts: [] }

afterEach(endWorlds)

describe.skipIf(!hasWorlds)('outbound by redirect', () => {
  test('a host whose IPv6 address refuses connections, or drops them, is reached by IPv4', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    // Only the IPv4 address listens at this port.
    expect(await world.get('http://both.test.example:8080/')).toBe('93.184.216.34')
    expect(await world.get('http://silent.test.example/')).toBe('93.184.216.35')
    expect(await world.get('http://[2606:4700::dead]/')).toBe('93.184.216.35')
    await world.step({ do: 'apply', settings: { mode: 'list', hosts: ['2606:4700::dead'] } })
    expect(await world.get('http://silent.test.example/')).toStartWith('failed')
  }, 120_000)

  test('public reaches the internet by address and by name over both protocols, and nothing inner', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    expect(await world.get('http://93.184.216.34/')).toBe('93.184.216.34')
    expect(await world.get('http://[2606:4700::34]/')).toBe('2606:4700::34')
    expect(await world.get('http://example.test.example:8080/')).toBe('93.184.216.34')
    expect(await world.get('http://both.test.example/')).toBe('2606:4700::34')
    for (const url of [
      ...[
        'http://10.0.0.5/',
        'http://169.254.169.254/',
        'http://inner.test.example/',
        'http://[::ffff:10.0.0.5]/',
      ],
      // The machine's own addresses, at which a service listens, and the service on its loopback.
      ...[
        'http://93.184.216.1:9001/',
        'http://93.184.217.1:9001/',
        'http://127.0.0.1:5432/',
        'http://localhost:9001/',
        'http://[::1]:9001/',
      ],
      'http://none.test.example/',
    ]) {
      expect(await world.get(url), url).toStartWith('failed')
    }
    const { told } = await world.refused()
    // A client that waits too long for a slow machine tries again, and gets the same response.
    expect([...new Set(told.map(({ destination }) => destination))]).toEqual([
      ...['10.0.0.5:80', '169.254.169.254:80', 'inner.test.example (10.0.0.5):80', '93.184.216.1:9001'],
      '93.184.217.1:9001',
    ])
    expect(told[0]?.remedy).toContain('berth servers network srv_world --add-host 10.0.0.5:80')
  }, 120_000)

  test('a name that moves to an inner address is refused when it is dialled', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: { mode: 'list', hosts: ['*.test.example'] }, way: 'redirect' })
    expect(await world.get('http://a.rebind.test.example/')).toBe('93.184.216.34')
    expect(await world.get('http://a.rebind.test.example/')).toStartWith('failed')
    const { told } = await world.refused()
    expect(told.map(({ destination }) => destination)).toEqual(['a.rebind.test.example (10.0.0.5):80'])
  }, 120_000)

  test.each(['redirect', 'proxy'] as const)(
    'so is one that moves to the machine itself, its loopback or a cloud’s metadata, by %s',
    async (way) => {
      const world = await openWorld()
      await world.step({ do: 'open', settings: PUBLIC, way })
      for (const [name, port] of [
        ['own', 9001],
        ['loopback', 9001],
        ['metadata', 80],
      ] as const) {
        const host = `${name}.rebind.test.example`
        expect(await world.get(`http://${host}/`), host).toBe('93.184.216.34')
        // A proxy responds with the refusal.
        expect(await world.get(`http://${host}:${port}/`, '-f'), host).toStartWith('failed')
      }
      const { told } = await world.refused()
      const refused = told.map(({ destination }) => destination)
      for (const place of [
        'own.rebind.test.example (93.184.216.1):9001',
        'metadata.rebind.test.example (169.254.169.254):80',
      ])
        expect(refused).toContain(place)
      // Of several addresses the proxy takes one that is allowed.
      if (way === 'proxy') expect(await world.get('http://mixed.test.example/', '-f')).toBe('93.184.216.34')
    },
    120_000,
  )

  test('list reaches listed names and addresses only, and names that are not listed are not looked up', async () => {
    const world = await openWorld()
    const hosts = ['example.test.example:80', '10.0.0.5:80']
    await world.step({ do: 'open', settings: { mode: 'list', hosts }, way: 'redirect' })
    expect(await world.get('http://example.test.example/')).toBe('93.184.216.34')
    expect(await world.get('http://10.0.0.5/')).toBe('10.0.0.5')
    for (const url of [
      ...['http://example.test.example:8080/', 'http://other.test.example/', 'http://93.184.216.35/'],
      'http://10.0.0.5:8080/',
    ]) {
      expect(await world.get(url), url).toStartWith('failed')
    }
    expect((await world.refused()).told.map(({ destination }) => destination)).toContain('other.test.example')
  }, 120_000)

  test('a change is in effect at once, for open connections too, and a closed relay lets nothing through', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    await world.step({
      do: 'begin',
      // It comes to the end of the connection when it has read what is buffered, which may be 6 MB.
      command: 'curl -sS -m 40 --limit-rate 1M -o /mnt/big http://93.184.216.34/big',
    })
    await world.run('until [ -s /mnt/big ]; do sleep 0.05; done')
    await world.step({ do: 'apply', settings: { mode: 'none', hosts: [] } })
    expect(await world.step({ do: 'await' })).toMatch(/reset|closed|Recv failure/i)
    expect(await world.get('http://93.184.216.34/')).toStartWith('failed')
    expect(await world.get('http://example.test.example/')).toStartWith('failed')
    await world.step({ do: 'apply', settings: { mode: 'open', hosts: [] } })
    expect(await world.get('http://10.0.0.5/')).toBe('10.0.0.5')
    await world.step({ do: 'close' })
    expect(await world.get('http://93.184.216.34/')).toStartWith('failed')
  }, 120_000)

  test('bytes pass whole both ways, and each half of a connection closes by itself', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    const zeros = Bun.SHA256.hash(new Uint8Array(20_000_000), 'hex')
    expect(await world.run('curl -sS -m 20 http://93.184.216.34/big | sha256sum')).toStartWith(zeros)
    const post = 'head -c 20000000 /dev/zero | curl -sS -m 20 --data-binary @- http://93.184.216.34/hash'
    expect(await world.run(post)).toBe(zeros)
    const client = `const s = await Bun.connect({ hostname: "93.184.216.34", port: 7, allowHalfOpen: true, socket: {
      open(s) { s.write(new Uint8Array(1000)); s.shutdown() }, data: (s, d) => void process.stdout.write(d), end: (s) => s.end() } })`
    expect(await world.run(`${process.execPath} -e '${client}'`)).toBe('1000 bytes')
  }, 120_000)

  test('a service of the machine that is handed in is at the same port of loopback inside', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: { mode: 'none', hosts: [] }, way: 'redirect', machine: 5432 })
    expect(await world.run('curl -sS -m 5 http://127.0.0.1:5432/')).toBe('the machine, on loopback')
    expect(await world.get('http://127.0.0.1:9001/')).toStartWith('failed')
  }, 120_000)

  test('names of loopback are the server itself, and a name server outside cannot be asked around berth', async () => {
    const world = await openWorld()
    await world.step({
      do: 'open',
      settings: { mode: 'list', hosts: ['example.test.example'] },
      way: 'redirect',
    })
    expect(await world.run('getent ahostsv4 shop.localhost | cut -d" " -f1 | sort -u')).toBe('127.0.0.1')
    // The same answer over TCP, whatever name server is named.
    const ask = `const q = new Uint8Array([1,2,1,0,0,1,0,0,0,0,0,0,5,...Buffer.from("other"),4,...Buffer.from("test"),7,...Buffer.from("example"),0,0,1,0,1])
      await Bun.connect({ hostname: "93.184.216.53", port: 53, socket: { open: (s) => void s.write(Buffer.concat([Buffer.from([0, q.length]), q])),
      data(s, d) { console.log("code", d[5] & 15); s.end() } } })`
    expect(await world.run(`${process.execPath} -e '${ask}'`)).toBe('code 5')
  }, 120_000)
})

describe.skipIf(!hasWorlds)('a relay that ends', () => {
  test('is started again with what it held: sockets, settings and the network fault', async () => {
    const world = await openWorld()
    const hosts = ['93.184.216.34']
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect', machine: 5432 })
    await world.step({ do: 'apply', settings: { mode: 'list', hosts } })
    await world.step({ do: 'disturb', fault: { offline: true, hosts: ['example.test.example'], seed: 1 } })
    expect(await world.get('http://93.184.216.34/')).toBe('93.184.216.34')

    expect(await world.step({ do: 'end the relay' })).toContain('is started again')
    expect(await world.get('http://93.184.216.34/')).toBe('93.184.216.34')
    expect(await world.get('http://93.184.216.35/')).toStartWith('failed')
    expect(await world.get('http://example.test.example/')).toStartWith('failed')
    expect(await world.run('curl -sS -m 5 http://127.0.0.1:5432/')).toBe('the machine, on loopback')
    await world.step({ do: 'apply', settings: { mode: 'none', hosts: [] } })
    expect(await world.get('http://93.184.216.34/')).toStartWith('failed')
  }, 120_000)

  test('refuses connections at once where it ends again and again', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    for (let time = 1; time <= 5; time++) {
      expect(await world.step({ do: 'end the relay' })).toContain('is started again')
      expect(await world.get('http://93.184.216.34/')).toBe('93.184.216.34')
    }
    expect(await world.step({ do: 'end the relay' })).toContain('until they are started again')
    expect(await world.get('http://93.184.216.34/')).toBe('failed 7')
    expect(world.step({ do: 'apply', settings: PUBLIC })).rejects.toThrow(
      'The relay of the servers has ended',
    )
  }, 120_000)
})

/**
 * Sends DNS queries over TCP and reads no answer, 400 queries at a time, until nothing more is taken for a second. Prints
 * the bytes that were taken, 20 MB at most.
 */
const UNREAD_ANSWERS = `
  use Socket; use Fcntl; $SIG{PIPE} = "IGNORE";
  socket(my $s, AF_INET, SOCK_STREAM, 0);
  setsockopt($s, SOL_SOCKET, SO_RCVBUF, 4096); setsockopt($s, SOL_SOCKET, SO_SNDBUF, 16384);
  connect($s, sockaddr_in(53, inet_aton("93.184.216.53"))) or die;
  fcntl($s, F_SETFL, O_NONBLOCK);
  my $query = pack("nnnnnn", 1, 256, 1, 0, 0, 0) . "\\x05other\\x04test\\x07example\\0" . pack("nn", 1, 1);
  my $batch = (pack("n", length $query) . $query) x 400;
  my ($sent, $at, $idle) = (0, 0, 0);
  while ($idle < 200 && $sent < 2e7) {
    my $n = syswrite($s, $batch, length($batch) - $at, $at);
    if (defined $n) { $sent += $n; $at = ($at + $n) % length $batch; $idle = 0 } else { $idle++ }
    select(undef, undef, undef, 0.005);
  }
  print $sent;
`

describe.skipIf(!hasWorlds)('what a server can have the relay keep', () => {
  test.skipIf(Bun.which('perl') === null)(
    'are no answers to name look-ups that it does not read',
    async () => {
      const world = await openWorld()
      await world.step({ do: 'open', settings: { mode: 'list', hosts: ['x.example'] }, way: 'redirect' })
      const sent = Number(await world.run(`perl -e '${UNREAD_ANSWERS}'`))
      expect(sent).toBeGreaterThan(100_000)
      expect(sent).toBeLessThan(10_000_000)
    },
    120_000,
  )

  // With so many, a server may have 15 connections, of two descriptors each.
  const OPEN_FILES = 240
  const MOST = 30

  test.each([
    ['connections to addresses that are silent, when it has given them up', '[2606:4700::dead]', 0.2],
    ['connections to all addresses of a name, each beside the ones before', 'silence.test.example', 4],
  ])(
    'are no more %s',
    async (_, host, seconds) => {
      const world = await openWorld(OPEN_FILES)
      await world.step({ do: 'open', settings: PUBLIC, way: 'proxy' })
      // The first one loads what all need.
      expect(await world.get('http://93.184.216.34/')).toBe('93.184.216.34')
      const before = Number(await world.step({ do: 'count descriptors' }))
      const get = `curl -s -m ${seconds} --proxytunnel http://${host}/`
      await world.step({ do: 'begin', command: `for n in $(seq 60); do ${get} & sleep 0.01; done; wait` })
      expect(await world.step({ do: 'count descriptors' })).toBeWithin(before + 5, before + MOST + 5)
    },
    120_000,
  )

  test('is no connection that was refused while the program was sending', async () => {
    const world = await openWorld(OPEN_FILES)
    await world.step({ do: 'open', settings: PUBLIC, way: 'proxy' })
    const post = 'head -c 3000000 /dev/zero | curl -s -m 5 -o /dev/null --data-binary @- http://10.0.0.5/'
    await world.run(`for n in $(seq 40); do ${post}; done`)
    expect(await world.get('http://93.184.216.34/')).toBe('93.184.216.34')
  }, 120_000)

  test('is no connection of a program or a host that is gone: the kernel asks them', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    const idle = 'exec 3<>/dev/tcp/93.184.216.34/7; sleep 10'
    await world.step({ do: 'begin', command: `timeout 10 bash -c '${idle}'` })
    for (const [where, place] of [
      ['inside', 'sport = :65535'],
      ['outside', 'dport = :7'],
    ] as const) {
      const timers = `until ss -tno state established '${place}' | grep -m 1 keepalive; do sleep 0.05; done`
      const found =
        where === 'inside' ? world.run(timers) : world.step({ do: 'run outside', command: timers })
      expect(await found).toContain('timer:(keepalive,1min')
    }
  }, 120_000)

  test('is a piece of a message in time that grows with its bytes, however small the pieces are', () => {
    const bytes = crypto.getRandomValues(new Uint8Array(64 * 1024))
    const received = new ReceivedBytes()
    const begun = process.cpuUsage()
    for (let round = 0; round < 4; round++) {
      for (let at = 0; at < bytes.length; at++) received.append(bytes.subarray(at, at + 1))
      expect(received.take(bytes.length)).toEqual(Buffer.from(bytes))
    }
    // Copying all that has come with each piece takes seconds.
    expect(process.cpuUsage(begun).user).toBeLessThan(500_000)
    received.append(bytes.subarray(0, 10))
    expect(received.take(4)).toEqual(Buffer.from(bytes.subarray(0, 4)))
    received.append(bytes.subarray(10, 20))
    expect(received.bytes).toEqual(Buffer.from(bytes.subarray(4, 20)))
  })
})

describe.skipIf(!hasWorlds)('outbound by proxy', () => {
  test('programs get out by the variables, judged by the same policy, with http and with tunnels', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'proxy' })
    expect(await world.get('http://example.test.example/')).toBe('93.184.216.34')
    expect(await world.get('http://93.184.216.34/', '--proxytunnel')).toBe('93.184.216.34')
    expect(await world.get('http://example.test.example/', '--proxytunnel')).toBe('93.184.216.34')
    expect(await world.run('curl -sS -m 5 http://10.0.0.5/')).toContain('--add-host 10.0.0.5:80')
    expect(await world.run('curl -sS -m 5 http://inner.test.example/')).toContain('not public (private)')
    expect(await world.run('curl -sS -m 5 http://none.test.example/')).toContain('no host with the name')
    expect(await world.get('http://10.0.0.5/', '--proxytunnel')).toStartWith('failed')
    // Loopback is the server's own, even if the proxy is asked for it.
    expect(await world.get('http://127.0.0.1:5432/', '--noproxy x')).toStartWith('berth')
    // Of a connection that fails, the cause.
    for (const [url, cause] of [
      ['http://93.184.216.53:81/', '93.184.216.53:81 refuses the connection: nothing listens there'],
      ['http://example.test.example:81/', 'example.test.example (93.184.216.34):81 refuses the connection'],
      ['http://8.8.8.8/', 'This machine has no route to 8.8.8.8:80'],
      ['http://93.184.216.99/', 'No host responds at 93.184.216.99:80'],
    ] as const) {
      expect(await world.run(`curl -sS -m 15 ${url}`), url).toContain(cause)
    }
    // curl shows a number alone if it asks for a tunnel, so that is reported beside what is refused.
    const { told, kept } = await world.refused()
    const failures = [
      ['none.test.example:80', 'There is no host with the name none.test.example', 'Check its spelling.'],
      [
        '93.184.216.53:81',
        '93.184.216.53:81 refuses the connection: nothing listens there',
        'Start a service there, or use another port.',
      ],
    ] as const
    for (const [destination, reason, remedy] of failures)
      expect(told).toContainEqual({ destination, reason, remedy, failed: true })
    expect(kept.map(({ destination }) => destination)).toEqual([
      '10.0.0.5:80',
      'inner.test.example (10.0.0.5):80',
      '127.0.0.1:5432',
    ])
    const tunnel = "curl -sv -m 15 --proxytunnel http://93.184.216.53:81/ | grep '^< HTTP'"
    expect(await world.run(tunnel)).toContain('502 93.184.216.53:81 refuses the connection')
    await world.step({ do: 'configure', file: 'resolv.conf', text: 'nameserver 127.0.0.9\n' })
    await world.step({ do: 'open a mute name server' })
    expect(await world.run('curl -sS -m 30 http://unknown.test.example/')).toContain(
      'could not be looked up: the name servers of this machine do not respond',
    )
    await world.step({ do: 'disturb', fault: { refused: true, seed: 1 } })
    expect(await world.run('curl -sS -m 5 http://93.184.216.34/')).toContain(
      'berth faults lift srv_world network',
    )
    await world.step({ do: 'disturb', fault: null })
    const node = 'console.log((await (await fetch("http://example.test.example/")).text()).split(" ")[0])'
    await world.step({ do: 'configure', file: 'resolv.conf', text: `nameserver ${NAME_SERVER}\n` })
    expect(await world.run(`${process.execPath} -e '${node}'`)).toBe('93.184.216.34')
  }, 120_000)
})

describe.skipIf(!hasWorlds)('a request to the proxy', () => {
  test.each([91, 92])(
    'is the only one of its connection, whatever the server says, at port %d',
    async (port) => {
      const world = await openWorld()
      await world.step({ do: 'open', settings: PUBLIC, way: 'proxy' })
      const first = `http://93.184.216.34:${port}/one`
      // Else a program would send the server what is meant for the next host.
      const said = await world.run(`curl -s -m 8 -H 'Cookie: secret' ${first} http://93.184.216.35/two`)
      expect(said).toContain('GET /one HTTP/1.1')
      expect(said).not.toContain('GET http://93.184.216.35')
      expect(said).toContain('93.184.216.35 GET 93.184.216.35 http://93.184.216.35/two')
    },
    120_000,
  )

  test('reaches the server as it was written, with the host of its URL and without what is for the proxy', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'proxy' })
    const headers = [
      'Host: other.test',
      'Proxy-Authorization: Basic c2VjcmV0',
      'Connection: X-Hop',
      'X-Hop: 1',
    ]
    const options = [...headers.map((header) => `-H '${header}'`), '-m 8 --path-as-is'].join(' ')
    const get = (path: string) => world.run(`curl -sS ${options} 'http://93.184.216.34:91${path}'`)
    const said = await get('/@scope/a/../b?q=%2e|x')
    expect(
      said
        .split('\r\n')
        .filter((line) => line !== '' && !line.startsWith('User-Agent'))
        .sort(),
    ).toEqual([
      ...[
        'Accept: */*',
        'Connection: close',
        'GET /@scope/a/../b?q=%2e|x HTTP/1.1',
        'Host: 93.184.216.34:91',
      ],
    ])
    expect(await world.run(`curl -sS -0 -m 8 http://93.184.216.34:91/`)).toContain('GET / HTTP/1.0')
  }, 120_000)

  test('is refused if it can be read in two ways, or names a host that no host can have', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'proxy' })
    const client = `for (const [line, ...headers] of JSON.parse(process.argv[1])) await new Promise((resolve) => Bun.connect({
      hostname: "127.0.0.1", port: 65535, socket: { open: (s) => void s.write([line, ...headers, "", ""].join("\\r\\n")),
      data: (s, bytes) => { console.log(String(bytes).slice(9, 12)); s.end() }, close: resolve } }))`
    const requests = [
      ['GET http://93.184.216.34/ HTTP/1.1', 'X: 1', ' folded'],
      ['GET http://93.184.216.34/ HTTP/1.1', 'Connection : keep-alive'],
      ['GET http://93.184.216.34/ HTTP/1.1', 'X: 1\nTransfer-Encoding: chunked'],
      [`CONNECT ${'a.'.repeat(200)}x:80 HTTP/1.1`],
      ['GET http://user:secret@93.184.216.34/ HTTP/1.1'],
      ['GET http://example.test.example@93.184.216.34/ HTTP/1.1'],
    ]
    const said = await world.run(`${process.execPath} -e '${client}' '${JSON.stringify(requests)}'`)
    expect(said.split('\n')).toEqual(requests.map(() => '400'))
  }, 120_000)
})

test.each([
  [
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nKeep-Alive: timeout=9\r\nA: 1\r\n\r\nbody',
    'A: 1\r\nConnection: close\r\n\r\nbody',
  ],
  [
    '\r\n\nHTTP/1.1 200 OK\nConnection: \n keep-alive\n\nbody\n\nConnection: x',
    '200 OK\r\nConnection: close\r\n\r\nbody\n\nConnection: x',
  ],
])(
  'of a response %j, however it arrives, the last head alone says that the connection ends',
  (given, end) => {
    const whole = Buffer.from(given)
    const [byPieces, atOnce] = [1, whole.length].map((size) => {
      const response = new ClosingResponse()
      const pieces = Array.from({ length: whole.length / size }, (_, n) =>
        whole.subarray(n * size, (n + 1) * size),
      )
      return Buffer.concat(pieces.map((piece) => response.pass(piece) ?? Buffer.from('too long'))).toString()
    })
    expect(byPieces).toEndWith(end)
    expect(atOnce).toBe(byPieces)
  },
)

test('a response whose head does not end is given up', () => {
  const response = new ClosingResponse()
  expect(response.pass(Buffer.from('HTTP/1.1 200 OK\r\nA: 1'))).toHaveLength(0)
  expect(response.pass(Buffer.alloc(70_000, 'a'))).toBeNull()
})

describe.skipIf(!hasWorlds)('network faults', () => {
  test('offline, refused names, latency, jitter and loss hold for what they name, and end without a trace', async () => {
    const world = await openWorld()
    await world.step({ do: 'open', settings: PUBLIC, way: 'redirect' })
    const time = async (): Promise<number> => {
      const [, seconds] =
        /total (\S+)/.exec(
          await world.run('curl -sS -m 9 -o /dev/null -w "total %{time_total}" http://93.184.216.34/'),
        ) ?? []
      return Number(seconds) * 1000
    }
    // A busy machine makes one slow now and then; latency would make each so.
    const fastest = async (): Promise<number> => {
      let least = Number.POSITIVE_INFINITY
      for (let n = 0; n < 6 && least >= 390; n += 1) least = Math.min(least, await time())
      return least
    }
    await world.step({ do: 'disturb', fault: { offline: true, seed: 1 } })
    expect(await world.get('http://93.184.216.34/')).toStartWith('failed')
    expect(await world.get('http://example.test.example/')).toBe('failed 6')

    await world.step({ do: 'disturb', fault: { refused: true, hosts: ['example.test.example'], seed: 1 } })
    expect(await world.get('http://example.test.example/')).toBe('failed 6')
    expect(await world.get('http://other.test.example/')).toBe('93.184.216.35')

    await world.step({ do: 'disturb', fault: { latencyMs: 400, seed: 1 } })
    // Once for the opening, once for the response.
    expect(await time()).toBeGreaterThan(790)
    await world.step({ do: 'disturb', fault: { latencyMs: 400, hosts: ['93.184.216.35'], seed: 1 } })
    expect(await fastest()).toBeLessThan(390)

    await world.step({ do: 'disturb', fault: { latencyMs: 300, jitterMs: 250, seed: 3 } })
    const times: number[] = []
    for (let n = 0; n < 6; n++) times.push(await time())
    // Twice between 50 and 550 ms, and different each time.
    expect(Math.min(...times)).toBeGreaterThan(95)
    expect(Math.max(...times)).toBeLessThan(1_500)
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(100)

    await world.step({ do: 'disturb', fault: { loss: 1, seed: 1 } })
    expect(await world.get('http://93.184.216.34/')).toStartWith('failed')
    expect(await world.get('http://example.test.example/', '-m 2')).toStartWith('failed')

    await world.step({ do: 'disturb', fault: null })
    expect(await world.get('http://example.test.example/')).toBe('93.184.216.34')
    expect(await fastest()).toBeLessThan(390)
  }, 120_000)
})
