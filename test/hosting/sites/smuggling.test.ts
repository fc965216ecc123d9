import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { Body } from '../../../src/hosting/sites/http1/body.ts'
import { ByteStream } from '../../../src/hosting/sites/http1/byte-stream.ts'
import { get, Raw, rawApp, rawWay, testSite } from './support.ts'

/** Reports whether bytes are one body in chunks. */
function isWhole(bytes: Buffer): boolean {
  const stream = new ByteStream()
  stream.data(bytes)
  const body = new Body(stream, 'chunked', 0)
  try {
    body.take()
  } catch {
    return false
  }
  return body.isOver && stream.take() === undefined
}

const HEAD = 'POST / HTTP/1.1\r\nHost: localhost\r\n'

describe('what programs may read in different ways is refused, and the connection closed', () => {
  test.each([
    ['two different lengths', `${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    ['the same length twice', `${HEAD}Content-Length: 2\r\nContent-Length: 2\r\n\r\nab`],
    ['a list of lengths', `${HEAD}Content-Length: 2, 2\r\n\r\nab`],
    ['a length with a sign', `${HEAD}Content-Length: +2\r\n\r\nab`],
    ['a negative length', `${HEAD}Content-Length: -2\r\n\r\nab`],
    ['a hexadecimal length', `${HEAD}Content-Length: 0x2\r\n\r\nab`],
    ['a length beyond all numbers', `${HEAD}Content-Length: 99999999999999999999\r\n\r\nab`],
    ['an empty length', `${HEAD}Content-Length:\r\n\r\nab`],
    ['a length and chunks', `${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['chunks and a length', `${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`],
    ['chunks twice', `${HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['chunks behind another encoding', `${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['chunks behind identity', `${HEAD}Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n`],
    ['another encoding', `${HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ['a quoted encoding', `${HEAD}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n`],
    ['an encoding behind a vertical tab', `${HEAD}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`],
    ['an encoding spelt with an underscore', `${HEAD}Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['a length spelt with an underscore', `${HEAD}Content_Length: 2\r\n\r\nab`],
    ['chunks in HTTP/1.0', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a space before the colon', `${HEAD}Content-Length : 2\r\n\r\nab`],
    ['a folded line', `${HEAD}A: b\r\n\tContent-Length: 2\r\n\r\nab`],
    ['a line that begins with a space', 'GET / HTTP/1.1\r\n Host: localhost\r\n\r\n'],
    ['a line without a colon', `${HEAD}Content-Length\r\n\r\n`],
    ['a line without a name', `${HEAD}: 2\r\n\r\n`],
    ['a bare LF between lines', `${HEAD}A: b\nContent-Length: 2\r\n\r\nab`],
    ['bare LFs alone', 'GET / HTTP/1.1\nHost: localhost\n\n'],
    ['a bare CR in a value', `${HEAD}A: b\rContent-Length: 2\r\n\r\nab`],
    ['a NUL in a value', `${HEAD}A: b\0\r\n\r\n`],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
    ['two Hosts', 'GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n'],
    ['a Host of two names', 'GET / HTTP/1.1\r\nHost: localhost, evil\r\n\r\n'],
    ['two spaces in the request line', 'GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a tab in the request line', 'GET\t/ HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a target that is no path', 'GET evil HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a target of credentials', 'GET http://a@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['HTTP/0.9', 'GET /\r\n\r\n'],
    ['another protocol', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a tunnel', 'CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n'],
  ])('%s', async (_name, request) => {
    await using way = await rawWay()
    const { backend, client } = way
    client.send(`${request}${get('/smuggled')}`)
    const answer = await client.end()
    expect(answer).toMatch(/^HTTP\/1\.1 (?:400|403|501) [\s\S]*\r\nConnection: close\r\n/)
    expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
    expect(backend.connections).toEqual([])
  })

  const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`
  test.each([
    ['no digit', 'x\r\n'],
    ['none at all', '\r\n'],
    ['a sign', '+1\r\na\r\n'],
    ['a prefix', '0x1\r\na\r\n'],
    ['a space before it', ' 1\r\na\r\n'],
    ['a space behind it', '1 \r\na\r\n'],
    ['a bare LF behind it', '1\na\r\n'],
    ['too many digits', '0000000000000001\r\na\r\n'],
    ['more content than it says', '1\r\nab\r\n'],
    ['a bare LF behind the content', '1\r\na\n0\r\n\r\n'],
    ['another octet for the CR behind it', '1x\na\r\n'],
    ['another octet for the CR behind the content', '1\r\nax\n0\r\n\r\n'],
    ['another octet for the LF behind the content', '1\r\na\rx0\r\n\r\n'],
    ['another octet for the CR behind the last', '0\r\n!\n\r\n'],
    ['another octet for the LF behind the last', '0\r\n\rx'],
    ['another octet for the CR behind a trailer', '0\r\nA: bx\n\r\n'],
    ['a bare LF in its extension', '1;a\nb\r\na\r\n'],
    ['a bare CR in its extension', '1;a\rb\r\na\r\n'],
    ['a bare LF in its long extension', `1;${'a'.repeat(30)}\nb\r\na\r\n`],
    ['a bare CR in its long extension', `1;${'a'.repeat(30)}\rb\r\na\r\n`],
    ['a control character in its long extension', `1;${'a'.repeat(30)}\0b\r\na\r\n`],
    ['a bare CR in a long trailer', `0\r\nA: ${'b'.repeat(30)}\rc\r\n\r\n`],
    ['a bare LF behind the last', '0\r\n\n'],
    ['a trailer with a space before the colon', '0\r\nA : b\r\n\r\n'],
    ['a folded trailer', '0\r\nA: b\r\n c\r\n\r\n'],
    ['a trailer that frames', '0\r\nContent-Length: 5\r\n\r\n'],
    ['a trailer that only a proxy may tell', '0\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n'],
    ['trailers without end', `0\r\n${'A: b\r\n'.repeat(10_000)}`],
  ])('a chunk with %s, at once or octet by octet', async (_name, chunks) => {
    await using way = await rawWay()
    const { backend, site, client } = way
    client.send(CHUNKED + chunks)
    expect(await client.end()).toStartWith('HTTP/1.1 400 ')
    expect(backend.connections).toEqual([])

    using slow = await Raw.to(site.port)
    slow.send(CHUNKED)
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    if (chunks.length < 100) for (const octet of chunks) slow.send(octet)
    else slow.send(chunks)
    expect(await slow.end()).toStartWith('HTTP/1.1 400 ')
    await upstream.end()
    expect(upstream.received).not.toContain('HTTP/1.1')
  })

  test('no octet stands for a CR or LF of the framing of chunks', () => {
    const bytes = Buffer.from('5;a=b\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-T: v\r\n\r\n')
    const accepted: string[] = []
    for (const [at, needed] of bytes.entries()) {
      if (needed !== 13 && needed !== 10) continue
      for (let octet = 0; octet < 256; octet += 1) {
        const changed = Buffer.from(bytes)
        changed[at] = octet
        if (isWhole(changed) !== (octet === needed)) accepted.push(`${octet} at ${at}`)
      }
    }
    expect(accepted).toEqual([])
  })

  test('an answer that the app gives without being asked reaches nobody', async () => {
    await using backend = await rawApp()
    await using site = await testSite(backend)
    using client = await Raw.to(site.port)
    client.send(get('/'))
    const upstream = await backend.connection()
    await upstream.until('\r\n\r\n')
    const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n'
    upstream.send(`${ok}ok${ok}no`)
    expect(await client.until('ok')).toBe(`${ok}ok`)
    await upstream.end()
    client.send(get('/'))
    const next = await backend.connection(1)
    await next.until('\r\n\r\n')
    next.send(`${ok}2.`)
    expect(await client.until('2.')).toBe(`${ok}2.`)
    // Also where it comes when nothing is under way.
    next.send(`${ok}no`)
    await next.end()
  })

  test('the refusal reaches a client that goes on sending: it is not cut off for a while', async () => {
    await using site = await testSite()
    using client = new Raw(connect({ port: site.port, host: '127.0.0.1', allowHalfOpen: true }))
    client.send(`${HEAD}Content-Length: x\r\n\r\n`)
    expect(await client.end()).toStartWith('HTTP/1.1 400 ')
    for (let round = 0; round < 5; round++) {
      await new Promise((resolve) => client.socket.write(Buffer.alloc(1_000_000), resolve))
    }
    expect(client.failed).toBe(false)
  })
})

test('a body that the app leaves unread is nobody’s request: its connection is used no more', async () => {
  await using backend = await rawApp()
  await using site = await testSite(backend)
  using attacker = await Raw.to(site.port)
  const hidden = get('/hidden')
  attacker.send(`GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`)
  const first = await backend.connection()
  await first.until('/hidden')
  const answerTo = (who: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${who.length}\r\n\r\n${who}`
  first.send(answerTo('attacker'))
  await attacker.until('attacker')

  using victim = await Raw.to(site.port)
  victim.send(get('/'))
  const second = await backend.connection(1)
  await second.until('\r\n\r\n')
  first.send(answerTo('hidden'))
  second.send(answerTo('victim'))
  expect(await victim.until('victim')).toBe(answerTo('victim'))
})

describe('a head', () => {
  test('that is too large is 431', async () => {
    await using backend = await rawApp()
    await using site = await testSite(backend)
    for (const filler of [`A: ${'b'.repeat(40_000)}`, 'A: b\r\n'.repeat(6_000)]) {
      using client = await Raw.to(site.port)
      client.send(`GET / HTTP/1.1\r\nHost: localhost\r\n${filler}`)
      expect(await client.end()).toStartWith('HTTP/1.1 431 ')
    }
    expect(backend.connections).toEqual([])
  })

  test('that comes too slowly is 408, however steadily it comes; a connection without one is closed', async () => {
    await using backend = await rawApp()
    await using site = await testSite({ ...backend, times: { headMs: 200 } })
    using idle = await Raw.to(site.port)
    using slow = await Raw.to(site.port)
    slow.send('GET / HTTP/1.1\r\nHost: localhost\r\nA: ')
    const drip = setInterval(() => slow.ended || slow.send('b'), 20)
    expect(await slow.end()).toStartWith('HTTP/1.1 408 ')
    clearInterval(drip)
    expect(await idle.end()).toBe('')
  })
})
