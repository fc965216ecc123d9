import { expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { berthForTests } from '../../support/berth.ts'

const berth = await berthForTests({ flags: { host: '0.0.0.0' } })
const port = new URL(berth.info.base_url).port

const elsewhere = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

/** A request that a page of elsewhere can send without asking: no header that browsers would ask about. */
async function ask(method: string, path: string, headers: Record<string, string>, host = '127.0.0.1') {
  const response = await fetch(`http://${host}:${port}${path}`, { method, headers })
  const text = await response.text()
  return { status: response.status, text }
}

test.each([
  'https://evil.example',
  'null',
  'http://localhost:1',
  'http://127.0.0.1',
  'http://my-app.localhost:PORT',
  'http://127.0.0.1:PORT.evil.example',
  'chrome-extension://abcdefgh',
])('a page of %s is refused, with and without the token', async (origin) => {
  const headers = { origin: origin.replace('PORT', port) }
  const authorization = `Bearer ${berth.info.admin_token}`
  for (const [method, path] of [
    ['GET', '/_berth/clock'],
    ['GET', '/_berth/health'],
    ['GET', '/_berth/openapi.json'],
    ['POST', '/_berth/accounts'],
    ['POST', '/_berth/nowhere'],
  ] as const) {
    const { status, text } = await ask(method, path, { ...headers, authorization })
    expect([path, status, JSON.parse(text).error]).toEqual([path, 403, 'forbidden'])
    expect(text).toContain('no requests of other web pages')
    expect((await ask(method, path, headers)).text).toBe(text)
  }
})

test("the instance's own pages and programs are let in, under each name that it answers to", async () => {
  const authorization = `Bearer ${berth.info.admin_token}`
  for (const host of ['127.0.0.1', 'localhost']) {
    for (const origin of [`http://${host}:${port}`, `https://${host}:${port}`]) {
      expect((await ask('GET', '/_berth/clock', { authorization, origin }, host)).status).toBe(200)
    }
    expect((await ask('GET', '/_berth/clock', { authorization }, host)).status).toBe(200)
  }
})

test.skipIf(elsewhere === undefined)(
  'checks come in order: Host, where the caller is, Origin, token',
  async () => {
    const evil = { origin: 'https://evil.example' }
    const refused = async (headers: Record<string, string>, host?: string) =>
      (await ask('GET', '/_berth/clock', headers, host)).text
    expect(await refused({ ...evil, host: 'rebound.example' }, elsewhere)).toContain('Host header')
    expect(await refused(evil, elsewhere)).toContain('this machine only')
    expect(await refused(evil)).toContain('no requests of other web pages')
    expect(await refused({})).toContain('admin token')
    for (const path of ['/_berth/openapi.json', '/_berth/docs', '/_berth/nowhere'])
      expect([path, (await ask('GET', path, {}, elsewhere)).status]).toEqual([path, 403])
    // Health checks of containers come from elsewhere.
    for (const path of ['/_berth/health', '/_berth/ready?'])
      expect([path, (await ask('GET', path, {}, elsewhere)).status]).toEqual([path, 200])
  },
)
