import { beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describedOperations } from '../../../src/contract/operation.ts'
import { API_OPERATION_IDS } from '../../../src/contract/operations.ts'
import { describedApp } from '../../../src/instance/describe.ts'
import { matcherOf } from '../../../src/testing/faults/match.ts'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'

const berth = await berthForTests({ flags: { isolation: 'none' } })
const server = await berth.server()
beforeEach(() => berth.control('DELETE', '/faults'))

/** Sets a fault and returns its id. */
async function fault(effect: object, match: object = {}, rest: object = {}, on = berth): Promise<string> {
  const { status, body } = await on.control('POST', '/faults', { match, effect, ...rest })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.id
}

const UNAVAILABLE = { error: { status: 503 } }

/** What is known of all faults: how many requests matched, and how many each struck. */
const counts = async (on = berth): Promise<[matched: number, hits: number][]> =>
  (await on.control('GET', '/faults')).body.faults.map((one: { matched: number; hits: number }) => [
    one.matched,
    one.hits,
  ])

/** The statuses of so many listings, one after the other. */
async function statuses(many: number, path = '/servers', on = berth): Promise<number[]> {
  const seen: number[] = []
  for (let at = 0; at < many; at += 1) seen.push((await on.call('GET', path)).status)
  return seen
}

test('every operation can be named by its id', async () => {
  const ids = describedOperations(await describedApp()).map(({ id }) => id)
  expect(ids.sort()).toEqual([...API_OPERATION_IDS].sort())
})

describe('an error', () => {
  test('is answered in the dialect of the API, and nothing is done', async () => {
    const id = await fault({ error: { status: 503 } }, { operation: 'servers.create' })
    const { status, headers, body } = await berth.call('POST', '/servers', {})
    expect([status, body.error, headers.get('retry-after')]).toEqual([503, 'service_unavailable', '1'])
    expect(body.message).toContain(id)
    expect(Object.keys(body)).toEqual(['error', 'message'])
    expect(headers.get('x-request-id')).toMatch(/^req_/)
    expect(headers.get('content-type')).toContain('application/json')
    expect((await berth.call('GET', '/servers')).body.servers.length).toBe(1)
    expect(await counts()).toEqual([[1, 1]])
  })

  test.each([
    [{ status: 402 }, 'budget_exceeded'],
    [{ status: 403 }, 'forbidden'],
    [{ status: 429 }, 'too_many_requests'],
    [{ status: 502 }, 'compute_backend_error'],
    [{ status: 599 }, 'error'],
    [{ status: 403, code: 'plan_limit', message: 'No more.' }, 'plan_limit'],
  ])('%j has the code %s', async (error, code) => {
    await fault({ error })
    const { status, body } = await berth.call('GET', '/servers')
    expect([status, body.error]).toEqual([error.status, code])
    if ('message' in error) expect(body.message).toBe(error.message)
  })

  test('is not kept for its Idempotency-Key: the next try is the first', async () => {
    const key = { 'idempotency-key': 'with-faults' }
    const path = `/servers/${server}/exec`
    const command = { command: 'echo x >> tries; wc -l < tries' }
    await fault(UNAVAILABLE, { operation: 'exec.run' }, { times: 1 })
    await fault({ backend: 'fail' }, { operation: 'exec.run' }, { times: 1 })
    expect((await berth.call('POST', path, command, key)).status).toBe(503)
    expect((await berth.call('POST', path, command, key)).status).toBe(502)
    for (const replayed of [null, 'true', 'true']) {
      const { body, headers } = await berth.call('POST', path, command, key)
      expect([body.stdout.trim(), headers.get('idempotent-replayed')]).toEqual(['1', replayed])
    }
  })
})

describe('a fault applies to', () => {
  test('after so many requests that match, and so many times', async () => {
    await fault(UNAVAILABLE, { operation: 'servers.list' }, { after: 2, times: 2 })
    await berth.call('GET', `/servers/${server}`)
    expect(await statuses(6)).toEqual([200, 200, 503, 503, 200, 200])
    expect(await counts()).toEqual([[6, 2]])
  })

  test('by chance that repeats with its seed', async () => {
    const run = async (seed: number): Promise<string> => {
      const id = await fault(UNAVAILABLE, {}, { probability: 0.3, seed })
      const seen = (await statuses(60)).map((status) => (status === 503 ? 'x' : '.')).join('')
      expect((await berth.control('DELETE', `/faults/${id}`)).body.matched).toBe(60)
      return seen
    }
    const first = await run(7)
    expect(await run(7)).toBe(first)
    expect(await run(8)).not.toBe(first)
    const struck = first.replaceAll('.', '').length
    expect(struck).toBeGreaterThan(8)
    expect(struck).toBeLessThan(30)
  })

  test('with a seed of its own where none is given, which --rng-seed decides', async () => {
    const seedOf = async (): Promise<unknown> => {
      await using seeded = await testBerth({ flags: { isolation: 'none', 'rng-seed': 5 } })
      const body = { match: {}, effect: { delay_ms: 1 }, probability: 0.5 }
      return (await seeded.control('POST', '/faults', body)).body.seed
    }
    const seed = await seedOf()
    expect(seed).toBeNumber()
    expect(await seedOf()).toBe(seed)
  })

  test('in the order in which they were set: all delays, then the first other effect', async () => {
    await fault({ delay_ms: 60 }, { path: '/servers' })
    await fault({ error: { status: 500 } }, { path: '/servers' }, { times: 1 })
    await fault({ error: { status: 504 } }, { path: '/servers' }, { times: 1 })
    await fault({ delay_ms: 60 }, { path: '/servers' })
    const began = performance.now()
    expect(await statuses(1)).toEqual([500])
    expect(performance.now() - began).toBeGreaterThan(115)
    expect(await statuses(2)).toEqual([504, 200])
    expect(await counts()).toEqual([
      [3, 3],
      [3, 1],
      [3, 1],
      [3, 3],
    ])
  })

  test.each([
    [{ path: '/servers' }, true],
    [{ path: '/servers/' }, true],
    [{ path: '/servers/*' }, false],
    [{ path: '/server*' }, true],
    [{ path: '**' }, true],
    [{ path: '/ser**' }, true],
    [{ method: 'get' }, true],
    [{ method: 'POST' }, false],
    [{ operation: 'servers.list', method: 'GET', path: '/servers' }, true],
    [{ operation: 'servers.get' }, false],
    [{}, true],
  ])('%j: %p', async (match, struck) => {
    await fault(UNAVAILABLE, match)
    expect(await statuses(1, '/servers?x=1')).toEqual([struck ? 503 : 200])
  })

  test.each([
    ['/servers/{id}/exec', '/servers/srv_1/exec', true],
    ['/servers/{id}', '/servers/srv_1/exec', false],
    ['/servers/srv_**', '/servers/srv_1/exec', true],
    ['**/exec', '/servers/srv_1/exec', true],
    ['/servers/*/files/**', '/servers/srv_1/files/a/b', true],
    ['/servers/[a-z]', '/servers/b', false],
    ['/servers/[a-z]', '/servers/[a-z]', true],
    ['!/servers/*', '/projects/prj_1', false],
    ['/servers/{id}*', '/servers/srv_1/exec', false],
    ['/**/exec', '/exec', false],
  ])('%s is for %s: %p', (path, given, struck) => {
    const matches = matcherOf({ path })
    expect(
      matches({
        operation: undefined,
        method: 'GET',
        path: given,
        accountId: undefined,
        client: null,
        needsPath: false,
      }),
    ).toBe(struck)
  })

  test('a glob of many wildcards is tried in no time', () => {
    const matches = matcherOf({ path: `/${'**/*a'.repeat(30)}x` })
    const path = `/${'a/'.repeat(500)}`
    const began = performance.now()
    expect(
      matches({
        operation: undefined,
        method: 'GET',
        path,
        accountId: undefined,
        client: null,
        needsPath: false,
      }),
    ).toBe(false)
    expect(performance.now() - began).toBeLessThan(20_000)
  })

  test('a HEAD request as to its GET', async () => {
    await fault(UNAVAILABLE, { operation: 'servers.list' })
    expect((await berth.fetch('/servers', { method: 'HEAD' })).status).toBe(503)
  })

  test('for one account alone, and only with a valid key', async () => {
    const other = (await berth.control('POST', '/accounts', {})).body
    await fault(UNAVAILABLE, { account_id: other.id })
    await fault(UNAVAILABLE, { path: '/openapi.json' })
    const authorization = `Bearer ${other.api_key}`
    expect(await statuses(1)).toEqual([200])
    expect((await berth.call('GET', '/servers', undefined, { authorization })).status).toBe(503)
    expect(
      (await berth.call('GET', '/servers', undefined, { authorization: 'Bearer sk_live_x' })).status,
    ).toBe(401)
    const { base_url: url } = berth.info
    // What needs no key has faults without one; another's Host is refused as always.
    expect((await fetch(`${url}/openapi.json`)).status).toBe(503)
    expect((await fetch(`${url}/openapi.json`, { headers: { host: 'elsewhere.example' } })).status).toBe(403)
    expect(await counts()).toEqual([
      [1, 1],
      [1, 1],
    ])
    await berth.control('DELETE', `/accounts/${other.id}`)
  })
})

describe('a delay', () => {
  test('lets the request go on with its body', async () => {
    await fault({ delay_ms: 80 }, { operation: 'files.write' })
    const began = performance.now()
    const content = 'x'.repeat(200_000)
    expect((await berth.call('PUT', `/servers/${server}/files`, { path: 'late', content })).status).toBe(201)
    expect(performance.now() - began).toBeGreaterThan(78)
    expect((await berth.call('GET', `/servers/${server}/files?path=late`)).body.content).toBe(content)
  })

  test('ends with its client, and nothing is done', async () => {
    await fault({ delay_ms: 60_000 }, { operation: 'servers.create' })
    const abort = new AbortController()
    const asked = berth.fetch('/servers', { method: 'POST', signal: abort.signal }).catch(() => 'gone')
    await until(async () => (await counts())[0]?.[1] === 1, 'the fault strikes')
    abort.abort()
    expect(await asked).toBe('gone')
    await berth.control('DELETE', '/faults')
    expect((await berth.call('GET', '/servers')).body.servers.length).toBe(1)
  })

  test.each(['reset', 'stop'])('ends with a %s', async (how) => {
    await using short = await testBerth({ flags: { isolation: 'none' } })
    await fault({ delay_ms: 60_000 }, {}, {}, short)
    const asked = short.call('GET', '/servers')
    await until(async () => (await counts(short))[0]?.[1] === 1, 'the fault strikes')
    await (how === 'stop' ? short.stop() : short.control('POST', '/reset'))
    const { status, body } = await asked
    expect([status, body.error]).toEqual([503, 'service_unavailable'])
    // A reset leaves no fault.
    if (how === 'reset') expect((await short.call('GET', '/servers')).status).toBe(200)
  })
})

/** What comes back for a request, until the connection ends. */
function received(text: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect(Number(new URL(berth.info.base_url).port), '127.0.0.1', () => socket.write(text))
  let got = ''
  socket.on('data', (data) => {
    got += data.toString()
  })
  socket.on('error', () => {})
  socket.on('close', () => resolve(got))
  return promise
}

const head = (method: string, length = 0, path = '/servers', more = '') =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${berth.info.api_key}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${length}\r\n${more}\r\n`

describe('a response of any kind', () => {
  test('is exactly what the fault says, with nothing of the API', async () => {
    const page = '<html><h1>502 Bad Gateway</h1></html>'
    await fault(
      { respond: { status: 502, content_type: 'text/html', headers: { Server: 'nginx' }, body: page } },
      { operation: 'servers.create' },
    )
    const response = await berth.fetch('/servers', { method: 'POST' })
    expect([response.status, await response.text()]).toEqual([502, page])
    const { date: _, ...headers } = Object.fromEntries(response.headers)
    expect(headers).toEqual({
      'content-type': 'text/html',
      'content-length': String(page.length),
      server: 'nginx',
    })
    expect((await berth.call('GET', '/servers')).body.servers.length).toBe(1)
  })

  test('may be a success, and may have no body', async () => {
    await fault({ respond: { status: 204 } }, {}, { times: 1 })
    await fault({ respond: { status: 200, body: '{"servers":' } }, {}, { times: 1 })
    const [first, second] = [await berth.fetch('/servers'), await berth.fetch('/servers')]
    expect([first.status, await first.text()]).toEqual([204, ''])
    expect([second.status, second.headers.get('content-type'), await second.text()]).toEqual([
      200,
      'text/plain;charset=utf-8',
      '{"servers":',
    ])
  })

  test('an error takes headers and the seconds of Retry-After too', async () => {
    await fault({ error: { status: 429, retry_after: 30, headers: { 'x-ratelimit-remaining': '0' } } })
    const { headers, body } = await berth.call('GET', '/servers')
    expect([headers.get('retry-after'), headers.get('x-ratelimit-remaining'), body.error]).toEqual([
      '30',
      '0',
      'too_many_requests',
    ])
  })
})

describe('a lost response', () => {
  test('has no byte, and everything was done', async () => {
    await fault({ lose_response: true }, { path: '/servers' }, { times: 3 })
    expect(await received(`${head('POST', 2)}{}`)).toBe('')
    expect(await received(head('GET'))).toBe('')
    expect(await received(head('HEAD'))).toBe('')
    const { servers } = (await berth.call('GET', '/servers')).body
    expect(servers.length).toBe(2)
    const made = servers.find(({ id }: { id: string }) => id !== server)
    await berth.call('DELETE', `/servers/${made.id}`)
    expect(berth.log().includes(' ERROR ')).toBe(false)
  }, 120_000)

  test('is there for the next try with its Idempotency-Key, and nothing is done twice', async () => {
    const path = `/servers/${server}/exec`
    const key = { 'idempotency-key': 'lost' }
    const command = { command: 'echo x >> lost; wc -l < lost' }
    await fault({ lose_response: true }, { operation: 'exec.run' }, { times: 1 })
    await expect(
      berth.fetch(path, {
        method: 'POST',
        body: JSON.stringify(command),
        headers: { 'content-type': 'application/json', ...key },
      }),
    ).rejects.toThrow()
    const { body, headers } = await berth.call('POST', path, command, key)
    expect([body.stdout.trim(), headers.get('idempotent-replayed')]).toEqual(['1', 'true'])
  })

  test('of a stream comes when what the stream shows has ended', async () => {
    await fault({ lose_response: true }, { operation: 'exec.run' })
    const body = '{"command":"sleep 0.2; echo done > streamed"}'
    const path = `/servers/${server}/exec`
    const accept = 'Accept: text/event-stream\r\n'
    expect(await received(`${head('POST', body.length, path, accept)}${body}`)).toBe('')
    expect((await berth.call('GET', `/servers/${server}/files?path=streamed`)).body.content).toBe('done\n')
  })
})

describe('a response that is cut off', () => {
  test('has its head and the first bytes of its body', async () => {
    await fault({ truncate: { bytes: 10 } }, { operation: 'servers.list' })
    const got = await received(head('GET'))
    expect(got).toStartWith('HTTP/1.1 200 OK\r\n')
    expect(got).toContain('x-request-id: req_')
    // One chunk (RFC 9112, 7.1), without the last chunk that ends a body.
    expect(got).toEndWith('\r\n\r\na\r\n{"servers"\r\n')
    await expect(berth.call('GET', '/servers')).rejects.toThrow()
  })

  test('arrives whole if it is shorter', async () => {
    await fault({ truncate: { bytes: 100_000 } }, { operation: 'servers.list' })
    expect((await berth.call('GET', '/servers')).body.servers.length).toBe(1)
  })
})

describe('a cut connection', () => {
  test('has no byte of an answer, whatever was sent', async () => {
    await fault({ disconnect: true }, { path: '/servers' })
    expect(await received(head('GET'))).toBe('')
    expect(await received(`${head('POST', 2)}{}`)).toBe('')
    expect(await received(`${head('POST', 300_000)}${' '.repeat(300_000)}`)).toBe('')
    expect(await received(`${head('POST', 300_000)}{`)).toBe('')
    expect(await received(head('DELETE'))).toBe('')
    expect(await received(head('HEAD'))).toBe('')
    expect((await counts())[0]).toEqual([6, 6])
    expect(berth.log().includes(' ERROR ')).toBe(false)
  }, 120_000)

  test.each([{ disconnect: true }, { lose_response: true }])(
    '%j is reported by curl and by Node',
    async (effect) => {
      await fault(effect, { path: '/servers' })
      const { base_url: url, api_key: key } = berth.info
      const run = async (command: string[]): Promise<string> => {
        const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe' })
        return (await child.stdout.text()) + (await child.stderr.text())
      }
      const header = `authorization: Bearer ${key}`
      if (Bun.which('curl'))
        expect(await run(['curl', '-sS', '-i', '-H', header, `${url}/servers`])).toMatch(
          /^curl: \((?:52|56)\) (?:Empty reply|Recv failure: Connection reset)/,
        )
      if (Bun.which('node')) {
        const program = `fetch('${url}/servers', { headers: { authorization: 'Bearer ${key}' } }).then((r) => console.log(r.status), (e) => console.log(e.cause.code))`
        expect(await run(['node', '-e', program])).toMatch(/^(?:ECONNRESET|UND_ERR_SOCKET)\n$/)
      }
    },
  )
})

describe('faults', () => {
  test('are listed and removed, one or all', async () => {
    const first = await fault({ disconnect: true }, { operation: 'exec.run' })
    const second = await fault({ backend: 'fail' }, { method: 'POST' }, { times: 3, after: 1 })
    const { body } = await berth.control('GET', '/faults')
    expect(body.faults).toMatchObject([
      { id: first, match: { operation: 'exec.run' }, effect: { disconnect: true }, times: null, after: 0 },
      { id: second, match: { method: 'POST' }, effect: { backend: 'fail' }, times: 3, after: 1, seed: null },
    ])
    expect((await berth.control('DELETE', `/faults/${first}`)).body).toMatchObject({
      id: first,
      deleted: true,
    })
    expect((await berth.control('DELETE', `/faults/${first}`)).status).toBe(404)
    expect((await berth.control('DELETE', '/faults')).body).toEqual({ deleted: 1 })
    expect((await berth.control('GET', '/faults')).body).toEqual({ faults: [] })
    expect((await berth.call('GET', '/_berth/faults')).status).toBe(401)
  })

  test('survive a restart with their counts, and the log warns of them; a snapshot has them, a reset removes them', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-test-'))
    try {
      await using before = await testBerth({ dataDir, flags: { isolation: 'none' } })
      await fault(UNAVAILABLE, { operation: 'servers.list' }, { times: 3 }, before)
      expect(await statuses(2, '/servers', before)).toEqual([503, 503])
      await before.stop()
      await using after = await testBerth({ dataDir, flags: { isolation: 'none' } })
      // Through a pipe it comes a moment later.
      await until(() => /WARN .*berth faults clear.*count=1/.test(after.log()), 'the log warns')
      expect(await counts(after)).toEqual([[2, 2]])
      expect(await statuses(2, '/servers', after)).toEqual([503, 200])
      await after.control('POST', '/snapshots', { name: 'struck' })
      await after.control('POST', '/reset')
      expect(await counts(after)).toEqual([])
      await after.control('POST', '/snapshots/struck/restore')
      expect(await counts(after)).toEqual([[4, 3]])
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
})
