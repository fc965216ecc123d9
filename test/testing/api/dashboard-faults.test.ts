import { beforeEach, describe, expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { Visitor } from '../../support/visitor.ts'

/** What a browser and the dashboard add to a request. */
const berth = await berthForTests({ flags: { isolation: 'none' } })
const browser = await Visitor.of(berth)
const own = {
  cookie: browser.cookie,
  'x-berth-csrf': await browser.csrf(),
  origin: browser.origin,
  'sec-fetch-site': 'same-origin',
  'x-berth-client': 'dashboard',
}
beforeEach(() => berth.control('DELETE', '/faults'))

const fault = (match: object): Promise<unknown> =>
  berth.control('POST', '/faults', { match, effect: { error: { status: 503 } } })

const status = async (path: string, headers: Record<string, string>): Promise<number> =>
  (await fetch(`${berth.info.base_url}${path}`, { headers, redirect: 'manual' })).status

const hits = async (): Promise<number[]> =>
  (await berth.control('GET', '/faults')).body.faults.map(({ matched }: { matched: number }) => matched)

describe('a fault of everything leaves the dashboard alone', () => {
  test('its calls, its page and what that loads, and the way in; none of them counts', async () => {
    await fault({})
    expect(await status('/servers', own)).toBe(200)
    expect(await status('/', { cookie: browser.cookie, accept: 'text/html' })).toBe(200)
    expect(await status('/signin', {})).toBe(200)
    expect(await status('/pages/mark.svg', {})).toBe(200)
    expect(await hits()).toEqual([0])
    expect((await berth.call('GET', '/servers')).status).toBe(503)
  })

  test('the reference, the guide, and the pages on which people allow a program something', async () => {
    await fault({})
    await fault({ path: '/**' })
    for (const path of ['/openapi.json', '/docs', '/docs/guide', '/llms.txt'])
      expect([path, await status(path, {})]).toEqual([path, 200])
    // Without a session they lead to the sign-in, or say what they miss.
    for (const path of ['/access', '/cli/authorize', '/oauth/authorize'])
      expect([path, await status(path, {})]).not.toEqual([path, 503])
    expect(await hits()).toEqual([0, 0])
    await fault({ path: '/openapi.json' })
    expect(await status('/openapi.json', own)).toBe(503)
    expect(await status('/docs', own)).toBe(200)
  })

  test('also its WebSocket, which can have no header of its own', async () => {
    await fault({})
    const url = `${berth.info.base_url.replace('http', 'ws')}/changes`
    const { cookie, origin } = browser
    const socket = new WebSocket(url, { headers: { cookie, origin } } as never)
    const { promise, resolve } = Promise.withResolvers<string>()
    socket.onmessage = ({ data }) => resolve(String(data))
    socket.onclose = ({ code }) => resolve(`closed with ${code}`)
    expect(JSON.parse(await promise)).toEqual({ type: 'ready' })
    socket.close()
  })

  test('unless it names the dashboard, and then it applies to no other client', async () => {
    await fault({ operation: 'servers.list', client: 'dashboard' })
    expect(await status('/servers', own)).toBe(503)
    expect((await berth.call('GET', '/servers')).status).toBe(200)
    expect((await berth.call('GET', '/servers', undefined, { 'x-berth-client': 'dashboard' })).status).toBe(
      200,
    )
    expect(await hits()).toEqual([1])
  })
})

describe('nobody else is exempt', () => {
  test('a key with the header of the dashboard', async () => {
    await fault({})
    expect((await berth.call('GET', '/servers', undefined, { 'x-berth-client': 'dashboard' })).status).toBe(
      503,
    )
    const { authorization } = { authorization: `Bearer ${berth.info.api_key}` }
    expect(await status('/servers', { ...own, authorization })).toBe(503)
  })

  test('a session without the header, and one without its token', async () => {
    await fault({})
    const { 'x-berth-client': _, ...browsing } = own
    expect(await status('/servers', browsing)).toBe(503)
    const { 'x-berth-csrf': __, ...untold } = own
    expect(await status('/servers', untold)).toBe(401)
    expect(await hits()).toEqual([1])
  })

  test('the command line, which a fault can name too', async () => {
    await fault({ client: 'cli' })
    expect((await berth.call('GET', '/servers', undefined, { 'x-berth-client': 'cli' })).status).toBe(503)
    expect((await berth.call('GET', '/servers')).status).toBe(200)
  })
})
