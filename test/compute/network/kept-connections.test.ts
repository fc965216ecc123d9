import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { Raw, type TestSite, testSite } from '../../hosting/sites/support.ts'
import { thorough } from '../../support/thorough.ts'
import { until } from '../bench.ts'
import { NetworkBench, networkIsPossible } from './network-bench.ts'

const PORT = 3000

/**
 * An app that prints `ID@CONNECTION` for each request that it has read, then calls `respond`. A request's id is followed by
 * a full stop.
 *
 * @param respond source of `(socket, id)`, which may use `ok(id)`
 */
const app = (respond: string): string => `
let connections = 0
const ok = (id) => 'HTTP/1.1 200 OK\\r\\nContent-Length: ' + id.length + '\\r\\n\\r\\n' + id
const respond = ${respond}
Bun.listen({ hostname: '127.0.0.1', port: ${PORT}, socket: {
  open(socket) { socket.data = { number: connections++, text: '', served: 0 } },
  close(socket) { console.log('closed ' + socket.data.number) },
  data(socket, chunk) {
    const { data } = socket
    data.text += chunk
    const id = /([a-z]+\\d+)\\./.exec(data.text)?.[1]
    if (id === undefined) return
    data.text = ''
    data.served += 1
    console.log(id + '@' + data.number)
    respond(socket, id)
  },
} })
console.log('ready')
`

const OK = '(socket, id) => socket.write(ok(id))'

describe.skipIf(!(await networkIsPossible()))('a connection to an app in a server’s own network', () => {
  test('carries one client’s requests with bodies one after the other, and nobody else’s', async () => {
    await using world = await started(OK)
    using one = await Raw.to(world.site.port)
    using other = await Raw.to(world.site.port)
    for (const id of ['a1', 'a2', 'a3']) await world.exchange(one, post(id), id)
    await world.exchange(other, post('b1'), 'b1')
    await world.exchange(other, get('c1'), 'c1')
    await world.exchange(one, post('a4'), 'a4')
    expect(await world.told(6)).toEqual(['a1@0', 'a2@0', 'a3@0', 'b1@1', 'c1@2', 'a4@0'])
  })

  test('ends with its client, and soon when it is idle', async () => {
    await using world = await started(OK)
    using one = await Raw.to(world.site.port)
    {
      using other = await Raw.to(world.site.port)
      await world.exchange(other, post('b1'), 'b1')
      await world.exchange(one, post('a1'), 'a1')
    }
    await until('both are closed', () => world.lines.filter((line) => line.startsWith('closed')).length === 2)
    await world.exchange(one, post('a2'), 'a2')
    expect(await world.told(3)).toEqual(['b1@0', 'a1@1', 'a2@2'])
  })

  test.each([
    ['has refused a body', 'HTTP/1.1 413 Too Large'],
    ['asks for its end', 'HTTP/1.1 200 OK\r\nConnection: close'],
  ])('is not used again if the app %s', async (_, head) => {
    const response = JSON.stringify(`${head}\r\nContent-Length: 2\r\n\r\n`)
    await using world = await started(`(socket, id) => socket.write(${response} + id)`)
    using client = await Raw.to(world.site.port)
    await world.exchange(client, post('a1'), 'a1')
    await world.exchange(client, post('a2'), 'a2')
    expect(await world.told(2)).toEqual(['a1@0', 'a2@1'])
  })

  test('takes no body of more than 64 KiB, or of unknown length, after another', async () => {
    await using world = await started(OK)
    using client = await Raw.to(world.site.port)
    await world.exchange(client, post('a1'), 'a1')
    await world.exchange(client, post('a2', '-'.repeat(70_000)), 'a2')
    await world.exchange(client, post('a3'), 'a3')
    client.send('POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n')
    await until('the request has begun', () => world.site.uses.begun === 4)
    await world.exchange(client, 'a4.\r\n0\r\n\r\n', 'a4')
    expect(await world.told(4)).toEqual(['a1@0', 'a2@1', 'a3@2', 'a4@3'])
  })

  // The app does not read while it sleeps, so the next request waits in the kernel when the app closes the connection.
  test.each([['end'], ['terminate']])(
    'that the app closes with an unread request is replaced, and the request arrives once (%s)',
    async (close) => {
      await using world = await started(`(socket, id) => {
        socket.write(ok(id))
        if (socket.data.number > 0) return
        setTimeout(() => { console.log('sleeps'); Bun.sleepSync(300); socket.${close}() }, 10)
      }`)
      using client = await Raw.to(world.site.port)
      await world.exchange(client, post('a1'), 'a1')
      await until('the app sleeps', () => world.lines.includes('sleeps'))
      const request = post('a2', '-'.repeat(100))
      // Its body comes in parts.
      client.send(request.slice(0, -80))
      await Bun.sleep(50)
      client.send(request.slice(-80, -40))
      await Bun.sleep(350)
      client.send(request.slice(-40))
      expect(await client.until('a2')).toStartWith('HTTP/1.1 200 OK')
      expect(await world.told(2)).toEqual(['a1@0', 'a2@1'])
    },
  )

  test.each([
    ['reads a request and then ends', 'socket.end()'],
    ['reads a request and then resets', 'socket.terminate()'],
    ['reads a part of a request and then resets', 'Bun.sleepSync(300); socket.terminate()'],
    ['crashes with a request', 'process.kill(process.pid, 9)'],
  ])('over which the app %s gets no request twice: the response is 502', async (_, close) => {
    await using world = await started(
      `(socket, id) => { if (id === 'a2') { ${close} } else socket.write(ok(id)) }`,
    )
    using client = await Raw.to(world.site.port)
    await world.exchange(client, post('a1'), 'a1')
    // The id is all that the app waits for.
    const rest = '-'.repeat(100)
    client.send(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${3 + rest.length}\r\n\r\na2.`)
    await until('the app has read a part', () => world.read().length === 2)
    client.send(rest)
    expect(await client.until('compute_backend_error')).toStartWith('HTTP/1.1 502')
    expect(await world.told(2)).toEqual(['a1@0', 'a2@0'])
  })

  test('fails no request and repeats none, if the app ends idle ones at any moment', async () => {
    await using world = await started(closesIdle('end'))
    const { sent, refused } = await load(world)
    expect(refused).toEqual([])
    expect((await arrived(world, sent.length)).toSorted()).toEqual(sent.toSorted())
  }, 120_000)

  // What the kernel tells of a reset connection is the same whether the app had read all or a request was just on its way.
  test('repeats no request and fails few, if the app resets idle ones at any moment', async () => {
    await using world = await started(closesIdle('terminate'))
    const { sent, refused } = await load(world)
    // The app resets only what it has read nothing of, so it has read none of these.
    const served = sent.filter((id) => !refused.includes(id))
    expect((await arrived(world, served.length)).toSorted()).toEqual(served.toSorted())
    expect(refused.length).toBeLessThan(sent.length / 50)
  }, 120_000)
})

/** An app's `respond` that closes the connections of which it has read nothing since its response, as servers do after a while. */
const closesIdle = (close: 'end' | 'terminate'): string => `(() => {
  let seed = 1
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647
  return (socket, id) => {
    socket.write(ok(id))
    const { served } = socket.data
    setTimeout(() => {
      if (socket.data.served !== served || socket.data.text !== '') return
      Bun.sleepSync(random())
      socket.${close}()
    }, random() * 4)
  }
})()`

/** Sends requests with bodies as ten clients at once. Returns the ids of all, and of those that got another status than 200. */
async function load({ site }: World): Promise<{ sent: string[]; refused: string[] }> {
  const sent: string[] = []
  const refused: string[] = []
  const signal = AbortSignal.timeout(50_000)
  const client = async (name: string): Promise<void> => {
    using client = await Raw.to(site.port)
    for (let n = 0; n < (thorough ? 300 : 100); n += 1) {
      const id = `${name}${n}`
      sent.push(id)
      client.send(post(id, '-'.repeat((n * 37) % 2_000)))
      // A look at each chunk: one every few milliseconds would send each request after the close. A refusal ends with JSON.
      while (!client.received.endsWith(id) && !client.received.endsWith('}')) {
        await once(client.socket, 'data', { signal })
      }
      if (!client.received.startsWith('HTTP/1.1 200')) refused.push(id)
      client.received = ''
      if (n % 3 === 0) await Bun.sleep((n * 7) % 5)
    }
  }
  await Promise.all([...'abcdefghij'].map(client))
  return { sent, refused }
}

/** Returns the ids of the requests that the app has read, once it has told of so many. */
async function arrived(world: World, requests: number): Promise<string[]> {
  const lines = await world.told(requests)
  // Some connections were used again, else this shows nothing.
  expect(new Set(lines.map((line) => line.split('@')[1])).size).toBeLessThan(lines.length)
  return lines.map((line) => line.split('@')[0] ?? '')
}

/** A request whose body ends with its id. */
const post = (id: string, body = ''): string =>
  `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length + id.length + 1}\r\n\r\n${body}${id}.`

const get = (id: string): string => `GET /${id}. HTTP/1.1\r\nHost: localhost\r\n\r\n`

interface World extends AsyncDisposable {
  readonly site: TestSite
  /** What the app has printed. */
  readonly lines: readonly string[]
  /** The ids of the requests that the app has read, each with its connection. */
  read(): string[]
  /** Waits until the app has told of so many requests, and returns what `read` does. */
  told(requests: number): Promise<string[]>
  /** Sends a request and waits for its response, which ends with the id. */
  exchange(client: Raw, request: string, id: string): Promise<void>
}

/** Starts a server with an app, and a site in front of it. */
async function started(respond: string): Promise<World> {
  await using parts = new AsyncDisposableStack()
  const { sandbox } = await parts.use(new NetworkBench()).start('srv_a')
  let printed = ''
  const lines: string[] = []
  sandbox.exec({
    command: 'bun -e "$APP"',
    env: { APP: app(respond) },
    timeoutMs: null,
    onOutput(_, data) {
      printed += Buffer.from(data).toString()
      const parts = printed.split('\n')
      printed = parts.pop() ?? ''
      lines.push(...parts)
    },
  })
  const read = (): string[] => lines.filter((line) => line.includes('@'))
  await until('the app listens', () => lines.includes('ready'))
  const site = parts.use(await testSite({ upstream: { kind: 'app', server: sandbox, port: PORT } }))
  const kept = parts.move()
  return {
    site,
    lines,
    read,
    async told(requests) {
      await until('the app has told of its requests', () => read().length >= requests)
      return read()
    },
    async exchange(client, request, id) {
      client.send(request)
      expect(await client.until(id)).toStartWith('HTTP/1.1 ')
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
