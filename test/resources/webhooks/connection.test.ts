import { beforeAll, describe, expect, test } from 'bun:test'
import { type AddressInfo, createServer } from 'node:net'
import type { WebhookOverrides } from '../../../src/resources/webhooks/deliveries.ts'
import { type Authority, makeAuthority } from '../../support/authority.ts'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/processes.ts'
import { receiver, verify } from '../../support/receiver.ts'

let authority: Authority
beforeAll(() => {
  authority = makeAuthority()
})

const berthWith = (webhooks: WebhookOverrides) =>
  testBerth({ flags: { 'allow-local-webhooks': true, isolation: 'none' }, dependencies: { webhooks } })

const everywhereHere = async () => ['127.0.0.1']

async function deliver(berth: TestBerth, url: string) {
  const { status, body: webhook } = await berth.call('POST', '/webhooks', { url })
  expect([status, webhook]).toEqual([201, expect.anything()])
  await berth.control('POST', '/events', { event: 'server.created' })
  const read = async () =>
    (await berth.control('GET', `/deliveries?webhook_id=${webhook.id}`)).body.deliveries[0]
  await until(async () => (await read())?.attempts.length === 1, 'the attempt is made')
  return { webhook, delivery: await read() }
}

describe('over TLS', () => {
  test('name, certificate, SNI and Host header are those of the URL, the address is the checked one', async () => {
    await using target = await receiver({ tls: authority.issue('DNS:hooks.test') })
    await using berth = await berthWith({ resolve: everywhereHere, ca: authority.ca })
    const { webhook, delivery } = await deliver(berth, `https://hooks.test:${target.port}/in?a=b#part`)
    expect(delivery).toMatchObject({ status: 'delivered' })
    const [got] = await target.got(1)
    if (!got) throw new Error('nothing came')
    expect(got.path).toBe('/in?a=b')
    expect(got.headers.host).toBe(`hooks.test:${target.port}`)
    expect(verify(webhook.secret, got)).toMatchObject({ event: 'server.created' })
  })

  test('a literal address is checked against the addresses of the certificate', async () => {
    await using target = await receiver({ tls: authority.issue('IP:127.0.0.1') })
    await using berth = await berthWith({ ca: authority.ca })
    expect((await deliver(berth, target.url)).delivery.status).toBe('delivered')
  })

  test.each([
    ['of another name', 'DNS:other.test', true],
    ['of an unknown authority', 'DNS:hooks.test', false],
  ])('a certificate %s gets nothing', async (_what, names, trusted) => {
    await using target = await receiver({ tls: authority.issue(names) })
    await using berth = await berthWith({ resolve: everywhereHere, ...(trusted ? { ca: authority.ca } : {}) })
    const { delivery } = await deliver(berth, `https://hooks.test:${target.port}/`)
    expect(delivery.status).toBe('pending')
    expect(delivery.attempts[0].error).toMatch(/certificate|altname|ERR_TLS|hostname/i)
    expect(target.received).toEqual([])
  })
})

describe('the addresses of a name', () => {
  test('are looked up once for an attempt, and the connection goes to what was checked', async () => {
    // A name server that gives one address to the checks and another at the next question.
    let asked = 0
    const resolve = async () => [++asked <= 2 ? '127.0.0.1' : '127.0.0.2']
    await using berth = await berthWith({ resolve, ca: authority.ca })
    await using tls = await receiver({ tls: authority.issue('DNS:rebinding.test') })
    const { delivery } = await deliver(berth, `https://rebinding.test:${tls.port}/`)
    expect(delivery.status).toBe('delivered')
    expect(asked).toBe(2)
  })

  test('are checked at every attempt: one that turns private is refused, and nothing is connected', async () => {
    let address = '127.0.0.1'
    await using target = await receiver({ tls: authority.issue('DNS:turning.test') })
    await using berth = await berthWith({ resolve: async () => [address], ca: authority.ca })
    const { webhook } = await deliver(berth, `https://turning.test:${target.port}/`)
    address = '10.0.0.1'
    await berth.control('POST', '/events', { event: 'server.stopped' })
    const read = async () =>
      (await berth.control('GET', `/deliveries?webhook_id=${webhook.id}`)).body.deliveries[0]
    await until(
      async () => (await read()).event === 'server.stopped' && (await read()).attempts.length === 1,
      'it is tried',
    )
    expect((await read()).attempts[0]).toMatchObject({ status: null, response: null })
    expect((await read()).attempts[0].error).toContain('10.0.0.1, which is not a public address')
    expect(target.received.length).toBe(1)
  })

  test('are tried one after the other where nothing listens at the first', async () => {
    await using target = await receiver({ tls: authority.issue('DNS:two.test') })
    const resolve = async () => ['127.0.0.77', '127.0.0.1']
    await using berth = await berthWith({ resolve, ca: authority.ca })
    expect((await deliver(berth, `https://two.test:${target.port}/`)).delivery.status).toBe('delivered')
  })

  test('that cannot be had fail the attempt, not berth', async () => {
    let known = true
    await using berth = await berthWith({
      resolve: async () => (known ? ['127.0.0.1'] : Promise.reject(new Error('EAI_AGAIN'))),
    })
    known = false
    const { delivery } = await deliver(berth, 'https://unknown.test/')
    expect(delivery.attempts[0].error).toContain('"unknown.test" does not resolve')
  })

  test('that never come end with the time of the attempt', async () => {
    let asked = 0
    const resolve = () => (++asked === 1 ? everywhereHere() : new Promise<string[]>(() => {}))
    await using berth = await berthWith({ resolve, timeoutMs: 200 })
    const { delivery } = await deliver(berth, 'https://slow.test/')
    expect(delivery.attempts[0].error).toContain('within 0.2 s')
  })
})

test('proxies of the environment are not asked', async () => {
  await using proxy = await receiver()
  await using target = await receiver()
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'ALL_PROXY']
  const before = names.map((name) => [name, process.env[name]] as const)
  const bypass = process.env.NO_PROXY
  process.env.NO_PROXY = ''
  for (const name of names) process.env[name] = proxy.url
  try {
    await using berth = await berthWith({ resolve: everywhereHere })
    // Those of the test's own requests would go through it: berth is asked directly.
    process.env.NO_PROXY = new URL(berth.info.base_url).host
    expect((await deliver(berth, target.url.replace('127.0.0.1', 'localhost'))).delivery.status).toBe(
      'delivered',
    )
  } finally {
    for (const [name, value] of [...before, ['NO_PROXY', bypass] as const]) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
  expect(target.received.length).toBe(1)
  expect(proxy.received).toEqual([])
})

/** A server that talks TCP as it likes, from the first byte of a request on. */
async function rawReceiver(onRequest: (socket: import('node:net').Socket) => void) {
  const state = { written: 0, open: 0 }
  const server = createServer((socket) => {
    state.open += 1
    socket.on('error', () => {})
    socket.on('close', () => {
      state.open -= 1
      state.written += socket.bytesWritten
    })
    socket.once('data', () => onRequest(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    state,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => void server.close(),
  }
}

describe('a receiver that', () => {
  test('says nothing is given up after the time of an attempt', async () => {
    await using target = await rawReceiver(() => {})
    await using berth = await berthWith({ timeoutMs: 200 })
    const { delivery } = await deliver(berth, target.url)
    expect(delivery.attempts[0]).toMatchObject({
      status: null,
      error: 'The response was not complete within 0.2 s.',
    })
    expect(delivery.attempts[0].ms).toBeGreaterThanOrEqual(190)
    expect(delivery.attempts[0].ms).toBeLessThan(20_000)
    await until(() => target.state.open === 0, 'the connection is closed')
  })

  test.each([
    ['the head', 'HTTP/1.1 200 OK\r\nx-slow: '],
    ['the body', 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n'],
  ])('drips %s byte by byte holds nothing open', async (_part, begin) => {
    await using target = await rawReceiver((socket) => {
      socket.write(begin)
      const drip = setInterval(() => socket.write('x'), 20)
      socket.on('close', () => clearInterval(drip))
    })
    await using berth = await berthWith({ timeoutMs: 250 })
    const { delivery } = await deliver(berth, target.url)
    expect(delivery.attempts[0].error).toContain('within 0.25 s')
    expect(delivery.attempts[0].ms).toBeLessThan(20_000)
    await until(() => target.state.open === 0, 'the connection is closed')
  })

  test('answers 100 MB costs a few: the first KiB is kept, the rest not read', async () => {
    const block = Buffer.alloc(1 << 20, 'x')
    await using target = await rawReceiver((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${100 * block.length}\r\n\r\n`)
      let left = 100
      const more = () => {
        while (left-- > 0) if (!socket.write(block)) return void socket.once('drain', more)
      }
      more()
    })
    await using berth = await berthWith({})
    const { delivery } = await deliver(berth, target.url)
    expect(delivery.status).toBe('delivered')
    expect(delivery.attempts[0].response.body).toBe('x'.repeat(1_024))
    await until(() => target.state.open === 0, 'the connection is closed')
    expect(target.state.written).toBeLessThan(20 << 20)
  })

  test('does not speak HTTP is distinguished', async () => {
    await using target = await rawReceiver((socket) => void socket.end('SSH-2.0-OpenSSH\r\n'))
    await using berth = await berthWith({})
    const { delivery } = await deliver(berth, target.url)
    expect(delivery.attempts[0].error).toContain('not reached')
  })

  test('is not there is distinguished', async () => {
    await using berth = await berthWith({})
    const { delivery } = await deliver(berth, `http://127.0.0.1:${freePort()}/hook`)
    expect(delivery.attempts[0].error).toContain('ECONNREFUSED')
  })
})
