import { expect, test } from 'bun:test'
import { guideIndex, guideNames } from '../../src/http/docs/guide/pages.ts'
import { berthForTests } from '../support/berth.ts'

const berth = await berthForTests()

const get = (path: string) => fetch(`${berth.info.base_url}${path}`, { redirect: 'manual' })

const hrefs = (html: string): string[] =>
  [...html.matchAll(/ href="([^"]+)"/g)].map(([, href = '']) => href.replaceAll('&amp;', '&'))

test('every page is shown to anybody, and each of its links leads to a page and a heading that exist', async () => {
  const seen = new Map<string, string>()
  const left = ['/docs/guide', '/docs/guide?q=faults']
  const broken: string[] = []
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    if (seen.has(path)) continue
    const response = await get(path)
    const body = await response.text()
    seen.set(path, body)
    if (response.status !== 200) broken.push(`${response.status} ${path}`)
    if (!response.headers.get('content-type')?.startsWith('text/html')) continue
    const within = hrefs(body).filter((href) => href.startsWith('/docs/guide'))
    left.push(...within.map((href) => href.split('#')[0] ?? ''))
  }
  for (const [path, body] of seen) {
    if (path.endsWith('.md')) continue
    for (const href of hrefs(body)) {
      const [target, fragment] = href.startsWith('#') ? [path, href.slice(1)] : href.split('#')
      const page = seen.get(target ?? '')
      if (page === undefined || fragment === undefined) continue
      if (!page.includes(` id="${decodeURIComponent(fragment)}"`)) broken.push(`${path}: ${href}`)
    }
  }
  expect(broken).toEqual([])
  expect(guideNames().filter((name) => !seen.has(`/docs/guide/${name}`))).toEqual([])
  // Examples are part of it, as they are.
  expect([...seen.keys()].filter((path) => path.startsWith('/docs/guide/examples/')).length).toBeGreaterThan(
    20,
  )
})

test('every part of a page is found by the words of its heading, at its place', async () => {
  const html = await (await get('/docs/guide?q=Idempotency-Key')).text()
  expect(hrefs(html)).toContain('/docs/guide/api#idempotency-key')
  const first = hrefs(html).find((href) => href.startsWith('/docs/guide/'))
  expect(first).toBe('/docs/guide/api#idempotency-key')
  expect(await (await get('/docs/guide?q=no-such-word-anywhere')).text()).toContain(
    'Nothing has all of these words',
  )
})

test('what is searched for never becomes markup', async () => {
  const html = await (await get(`/docs/guide?q=${encodeURIComponent('"><script>alert(1)</script>')}`)).text()
  expect(html).not.toContain('<script')
  expect(html).toContain('&lt;script&gt;')
})

test.each([
  '../package.json',
  '..%2fpackage.json',
  '%2e%2e/package.json',
  'examples/../../package.json',
  'none',
  'a%00b',
])('nothing outside the guide is read: %s', async (path) => {
  const response = await get(`/docs/guide/${path}`)
  expect(response.status).toBe(404)
  expect(await response.text()).not.toContain('"dependencies"')
})

test('/llms.txt lists every page as Markdown, which is what the source of the guide has', async () => {
  const response = await get('/llms.txt')
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  const listed = [...(await response.text()).matchAll(/\(\/docs\/guide\/([\w-]+)\.md\)/g)].map(
    ([, name = '']) => name,
  )
  expect(listed.sort()).toEqual(guideNames())
  const page = await get('/docs/guide/faults.md')
  expect(page.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
  expect(await page.text()).toStartWith('# Faults')
  expect((await guideIndex()).flatMap(({ entries }) => entries)).toHaveLength(guideNames().length)
})

test('all text is compressed for clients that take it, and the same as for others', async () => {
  const page = await (await get('/docs/guide')).text()
  const files = [...page.matchAll(/<link rel="(?:stylesheet|icon)"[^>]* href="([^"]+)"/g)].map(
    ([, url = '']) => url,
  )
  expect(files.length).toBe(2)
  const reference = await (await get('/docs')).text()
  const [, script = ''] = /<script[^>]* src="([^"]+)"/.exec(reference) ?? []
  for (const path of [
    '/docs/guide',
    '/docs/guide/api',
    '/docs/guide/api.md',
    '/llms.txt',
    ...files,
    script,
  ]) {
    const load = (coding: string, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(`${berth.info.base_url}${path}`, {
        headers: { 'accept-encoding': coding, ...headers },
        decompress: false,
      })
    const plain = await load('identity')
    expect([path, plain.headers.get('content-encoding')]).toEqual([path, null])
    expect(plain.headers.get('vary')).toContain('accept-encoding')
    const whole = await plain.text()
    const small = await load('gzip')
    expect([path, small.headers.get('content-encoding')]).toEqual([path, 'gzip'])
    const bytes = new Uint8Array(await small.arrayBuffer())
    expect(bytes.length).toBeLessThan(whole.length)
    expect(new TextDecoder().decode(Bun.gunzipSync(bytes))).toBe(whole)
    const etag = small.headers.get('etag')
    if (etag !== null) expect((await load('gzip', { 'if-none-match': etag })).status).toBe(304)
  }
})
