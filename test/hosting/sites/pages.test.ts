import { describe, expect, test } from 'bun:test'
import { LiveReload, RELOAD_PATH } from '../../../src/hosting/static/reload.ts'
import { fileSite } from './file-site.ts'

/** A request, and the status with the body or the address that it is to get. */
type Case = readonly [path: string, status: number, response: string]

describe('a page', () => {
  const files = {
    'index.html': 'home',
    'about.html': 'about',
    'old.htm': 'old',
    'über uns/der Verlag.html': 'encoded',
    'data.json': '{}',
    notes: 'exact',
    'notes.html': 'not this one',
    'docs/index.html': 'docs',
    'docs.html': 'beside docs',
    'blog.html': 'blog',
    'blog/first.html': 'first',
    'app.js.html': 'source of app.js',
    '.secret.html': 'hidden',
    '.well-known.html': 'hidden',
    '404.html': 'missing',
  }

  const cases: readonly Case[] = [
    ['/about', 200, 'about'],
    ['/about?from=mail', 200, 'about'],
    ['/about.html', 200, 'about'],
    ['/old', 200, 'old'],
    ['/%C3%BCber%20uns/der%20Verlag', 200, 'encoded'],
    ['/app.js', 200, 'source of app.js'],
    ['/index', 200, 'home'],
    // What is there under the exact name goes first, then a directory with an index.
    ['/notes', 200, 'exact'],
    ['/docs', 301, '/docs/'],
    ['/docs/', 200, 'docs'],
    // A directory without an index does not hide the page of its name.
    ['/blog', 200, 'blog'],
    ['/blog/first', 200, 'first'],
    // Its relative links are those of the path without the slash.
    ['/about/', 301, '/about'],
    ['/about/?from=mail', 301, '/about?from=mail'],
    ['/blog/', 301, '/blog'],
    ['/%C3%BCber%20uns/der%20Verlag/', 301, '/%C3%BCber%20uns/der%20Verlag'],
    ['/About', 404, 'missing'],
    ['/data', 404, 'missing'],
    ['/about.html/', 404, 'missing'],
    ['/about/more', 404, 'missing'],
    ['/notes/', 404, 'missing'],
    ['/.secret', 404, 'missing'],
    ['/.well-known', 404, 'missing'],
  ]

  test.each(cases)('is at %s: %i %s', async (path, status, response) => {
    await using site = await fileSite()
    for (const [name, text] of Object.entries(files)) site.put(name, text)
    const got = await site.fetch(path)
    expect([got.status, got.headers.get('location') ?? (await got.text())]).toEqual([status, response])
  })

  test('goes before the index of a single-page app and before a listing', async () => {
    await using site = await fileSite({ fallback: true, listing: true })
    site.put('index.html', 'home')
    site.put('about.html', 'about')
    site.put('blog.html', 'blog')
    site.put('blog/first.html', 'first')
    const headers = { accept: 'text/html' }
    const bodies = ['/about', '/blog', '/blog/first', '/other'].map(async (path) =>
      (await site.fetch(path, { headers })).text(),
    )
    expect(await Promise.all(bodies)).toEqual(['about', 'blog', 'first', 'home'])
    expect((await site.fetch('/blog/')).headers.get('location')).toBe('/blog')
  })

  test('is sent by HEAD, by condition and in ranges as under its name', async () => {
    await using site = await fileSite()
    site.put('about.html', 'about us')
    const head = await site.fetch('/about', { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '8'])
    expect(head.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const etag = head.headers.get('etag') ?? ''
    expect(etag).toBe((await site.fetch('/about.html')).headers.get('etag') ?? '-')
    expect((await site.fetch('/about', { headers: { 'if-none-match': etag } })).status).toBe(304)
    const part = await site.fetch('/about', { headers: { range: 'bytes=6-' } })
    expect([part.status, await part.text()]).toEqual([206, 'us'])
  })

  test('reloads when files change, also without its ending', async () => {
    await using site = await fileSite({ reload: new LiveReload() })
    site.put('about.html', '<body>about</body>')
    expect(await (await site.fetch('/about')).text()).toContain(RELOAD_PATH)
  })

  test('that is hidden is not there', async () => {
    await using site = await fileSite({ isHidden: (names) => names[0] === 'about.html' })
    site.put('about.html', 'about')
    expect((await site.fetch('/about')).status).toBe(404)
    expect((await site.fetch('/about/')).status).toBe(404)
  })
})
