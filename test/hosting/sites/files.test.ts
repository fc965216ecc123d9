import { describe, expect, test } from 'bun:test'
import { linkSync, renameSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import { serveFiles } from '../../../src/hosting/static/serve.ts'
import { openBelow } from '../../compute/workspace-fixture.ts'
import { type FileSite, fileSite, SECRET } from './file-site.ts'
import { app, get, Raw } from './support.ts'

describe('a file', () => {
  test.each([
    ['a.html', 'text/html; charset=utf-8'],
    ['a.css', 'text/css; charset=utf-8'],
    ['a.js', 'text/javascript; charset=utf-8'],
    ['a.mjs', 'text/javascript; charset=utf-8'],
    ['a.json', 'application/json; charset=utf-8'],
    ['a.svg', 'image/svg+xml; charset=utf-8'],
    ['a.txt', 'text/plain; charset=utf-8'],
    ['a.wasm', 'application/wasm'],
    ['a.png', 'image/png'],
    ['a.woff2', 'font/woff2'],
    ['a', 'application/octet-stream'],
  ])('%s is %s', async (path, type) => {
    await using files = await fileSite()
    files.put(path, 'content')
    const response = await files.fetch(`/${path}`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe(type)
    expect(response.headers.get('cache-control')).toBe('no-cache')
    expect(await response.text()).toBe('content')
  })

  test('is found by an encoded name, and below .well-known', async () => {
    await using files = await fileSite()
    files.put('a b/ü&.txt', 'odd')
    files.put('.well-known/security.txt', 'known')
    expect(await (await files.fetch('/a%20b/%C3%BC&.txt?query=/../x#fragment')).text()).toBe('odd')
    expect(await (await files.fetch('/.well-known/security.txt')).text()).toBe('known')
  })

  test('answers HEAD with its length and without its content', async () => {
    await using files = await fileSite()
    files.put('a.txt', 'content')
    files.put('large.bin', new Uint8Array(1_000_000))
    for (const [path, length] of [
      ['/a.txt', '7'],
      ['/large.bin', '1000000'],
    ] as const) {
      const response = await files.fetch(path, { method: 'HEAD' })
      expect([response.status, response.headers.get('content-length')]).toEqual([200, length])
      expect(await response.text()).toBe('')
    }
  })

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('answers %s with 405', async (method) => {
    await using files = await fileSite()
    files.put('index.html', 'home')
    const body = method === 'OPTIONS' ? null : 'x'.repeat(100_000)
    const response = await files.fetch('/', { method, body })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(await response.json()).toMatchObject({ error: 'method_not_allowed' })
  })

  test('of 100 MB comes whole, is never whole in memory, and is let go of by who goes away', async () => {
    await using files = await fileSite()
    const size = 100 * 1024 * 1024
    files.put('large.bin', '')
    truncateSync(join(files.root, 'large.bin'), size)
    let received = 0
    for await (const chunk of (await files.fetch('/large.bin')).body ?? []) received += chunk.length
    expect(received).toBe(size)

    using client = await Raw.to(files.site.port)
    client.send(get('/large.bin'))
    await client.until('\r\n\r\n')
    client.socket.pause()
    const before = process.memoryUsage.rss()
    await Bun.sleep(300)
    expect(process.memoryUsage.rss() - before).toBeLessThan(32 * 1024 * 1024)
    expect(openBelow(files.root)).not.toEqual([])
  })

  test('that changes is answered as it is now, however soon', async () => {
    await using files = await fileSite()
    for (let round = 0; round < 50; round++) {
      files.put('a.txt', `content ${round % 10}`)
      expect(await (await files.fetch('/a.txt')).text()).toBe(`content ${round % 10}`)
    }
    // Kept by now: a replaced one, and one whose old date was put back, are new all the same.
    utimesSync(join(files.root, 'a.txt'), 1_000, 1_000)
    await Bun.sleep(150)
    for (let round = 0; round < 3; round++) await files.fetch('/a.txt')
    files.put('b.txt', 'CONTENT 9')
    utimesSync(join(files.root, 'b.txt'), 1_000, 1_000)
    renameSync(join(files.root, 'b.txt'), join(files.root, 'a.txt'))
    expect(await (await files.fetch('/a.txt')).text()).toBe('CONTENT 9')
    rmSync(join(files.root, 'a.txt'))
    expect((await files.fetch('/a.txt')).status).toBe(404)
  })
})

describe('a condition (RFC 9110, 13)', () => {
  test.each([
    ['if-none-match', (etag: string) => etag, 304],
    ['if-none-match', (etag: string) => `"x", W/${etag}`, 304],
    ['if-none-match', () => '*', 304],
    ['if-none-match', () => '"x"', 200],
    ['if-match', (etag: string) => `"x", ${etag}`, 200],
    ['if-match', (etag: string) => `W/${etag}`, 412],
    ['if-match', () => '*', 200],
    ['if-match', () => '"x"', 412],
    ['if-modified-since', (_: string, date: string) => date, 304],
    ['if-modified-since', () => 'Thu, 01 Jan 1970 00:00:00 GMT', 200],
    ['if-modified-since', () => 'nonsense', 200],
    ['if-unmodified-since', (_: string, date: string) => date, 200],
    ['if-unmodified-since', () => 'Thu, 01 Jan 1970 00:00:00 GMT', 412],
  ])('%s %#', async (name, value, status) => {
    await using files = await fileSite()
    files.put('a.txt', 'content')
    const { headers } = await files.fetch('/a.txt')
    const [etag, date] = [headers.get('etag') ?? '', headers.get('last-modified') ?? '']
    expect(etag).toMatch(/^"[\w-]+"$/)
    const response = await files.fetch('/a.txt', { headers: { [name]: value(etag, date) } })
    expect(response.status).toBe(status)
    if (status === 304) expect(response.headers.get('etag')).toBe(etag)
    expect(await response.text()).toBe(status === 200 ? 'content' : '')
  })

  test('If-None-Match goes before If-Modified-Since, If-Match before If-Unmodified-Since', async () => {
    await using files = await fileSite()
    files.put('a.txt', 'content')
    const { headers } = await files.fetch('/a.txt')
    const [etag, date] = [headers.get('etag') ?? '', headers.get('last-modified') ?? '']
    const first = { 'if-none-match': '"x"', 'if-modified-since': date }
    expect((await files.fetch('/a.txt', { headers: first })).status).toBe(200)
    const second = { 'if-match': etag, 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' }
    expect((await files.fetch('/a.txt', { headers: second })).status).toBe(200)
  })
})

describe('a range (RFC 9110, 14)', () => {
  const text = '0123456789'
  test.each([
    ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
    ['bytes=4-', 206, '456789', 'bytes 4-9/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=-30', 206, text, 'bytes 0-9/10'],
    ['bytes=9-100', 206, '9', 'bytes 9-9/10'],
    ['bytes=0-0,5-6', 200, text, null],
    ['bytes=5-2', 200, text, null],
    ['bytes=-', 200, text, null],
    ['lines=1-2', 200, text, null],
  ])('%s', async (range, status, body, contentRange) => {
    await using files = await fileSite()
    files.put('a.txt', text)
    const response = await files.fetch('/a.txt', { headers: { range } })
    expect(response.status).toBe(status)
    expect(response.headers.get('content-range')).toBe(contentRange)
    expect(await response.text()).toBe(body)
  })

  test.each(['bytes=10-', 'bytes=-0', 'bytes=99999999999999999999-'])('%s is 416', async (range) => {
    await using files = await fileSite()
    files.put('a.txt', text)
    const response = await files.fetch('/a.txt', { headers: { range } })
    expect([response.status, response.headers.get('content-range')]).toEqual([416, 'bytes */10'])
  })

  test('holds for large files, and only as long as If-Range does', async () => {
    await using files = await fileSite()
    const content = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => index % 251))
    files.put('large.bin', content)
    const range = 'bytes=300000-899999'
    const part = await files.fetch('/large.bin', { headers: { range } })
    expect(part.status).toBe(206)
    expect(Buffer.from(await part.arrayBuffer())).toEqual(content.subarray(300_000, 900_000))
    const etag = part.headers.get('etag') ?? ''
    const date = part.headers.get('last-modified') ?? ''
    for (const [condition, status] of [
      [etag, 206],
      [date, 206],
      ['"other"', 200],
      [`W/${etag}`, 200],
      ['Thu, 01 Jan 1970 00:00:00 GMT', 200],
    ] as const) {
      const response = await files.fetch('/large.bin', { headers: { range, 'if-range': condition } })
      expect([condition, response.status]).toEqual([condition, status])
      await response.body?.cancel()
    }
  })
})

describe('a folder', () => {
  test('is answered with its index.html, and leads there without its slash', async () => {
    await using files = await fileSite()
    files.put('index.html', 'home')
    files.put('docs/a b/index.html', 'docs')
    expect(await (await files.fetch('/')).text()).toBe('home')
    expect(await (await files.fetch('/docs/a%20b/')).text()).toBe('docs')
    const response = await files.fetch('/docs/a%20b?x=1')
    expect([response.status, response.headers.get('location')]).toEqual([301, '/docs/a%20b/?x=1'])
    expect(await files.raw('//docs//a%20b')).toContain('location: /docs/a%20b/\r\n')
  })

  test('without one is not there, or listed where that is wanted', async () => {
    await using files = await fileSite()
    files.put('folder/a.txt', '')
    expect((await files.fetch('/folder/')).status).toBe(404)
    expect((await files.fetch('/folder')).status).toBe(404)

    await using listed = await fileSite({ listing: true })
    listed.put('folder/<b>&".txt', '')
    listed.put('folder/a:b/c.txt', '')
    listed.put('folder/.hidden', '')
    symlinkSync(listed.outside, join(listed.root, 'folder/out'))
    expect((await listed.fetch('/folder')).headers.get('location')).toBe('/folder/')
    const page = await (await listed.fetch('/folder/')).text()
    expect(page).toContain('<a href="./%3Cb%3E%26%22.txt">&#60;b&#62;&#38;&#34;.txt</a>')
    expect(page).toContain('<a href="./a%3Ab/">a:b/</a>')
    expect(page).toContain('<a href="../">')
    expect(page).not.toMatch(/hidden|out/)
    expect(await (await listed.fetch('/')).text()).not.toContain('../')
  })
})

describe('what is not there', () => {
  test('is 404: JSON for programs, a page for browsers, or 404.html of the site', async () => {
    await using files = await fileSite()
    const program = await files.fetch('/none')
    expect([program.status, await program.json()]).toEqual([
      404,
      { error: 'not_found', message: 'There is no such page.' },
    ])
    const browser = await files.fetch('/none', { headers: { accept: 'text/html' } })
    expect(browser.headers.get('content-type')).toBe('text/html; charset=utf-8')
    files.put('404.html', 'own')
    const own = await files.fetch('/none', { headers: { 'if-none-match': '*', range: 'bytes=0-0' } })
    expect([own.status, await own.text(), own.headers.get('etag')]).toEqual([404, 'own', null])
  })

  test('is the index where the app is a single page, for who asks for a page', async () => {
    await using files = await fileSite({ fallback: true })
    files.put('index.html', 'app')
    const page = await files.fetch('/deep/link', { headers: { accept: 'text/html,*/*' } })
    expect([page.status, await page.text()]).toEqual([200, 'app'])
    expect((await files.fetch('/assets/gone.js')).status).toBe(404)
  })
})

describe('nothing else is reached', () => {
  const targets = [
    '/../../outside/secret.txt',
    '/..%2f..%2foutside/secret.txt',
    '/%2e%2e/%2e%2e/outside/secret.txt',
    '/a/..%5c..%5c..%5coutside/secret.txt',
    '/a/..\\..\\..\\outside\\secret.txt',
    '/%2e%2e%2f%2e%2e%2foutside/secret.txt',
    '/link/secret.txt',
    '/file',
    '/a/link/secret.txt',
    '/.env',
    '/%2eenv',
    '/a/.git/config',
    '/a%2f.git%2fconfig',
    '/a%2fplain.txt',
    '/a\\plain.txt',
    '/.well-known/.env',
    '/a/.well-known/x',
    '/index.html%00.txt',
    '/index.html%0a',
    '/%ff',
    '/%',
    '/index.html/',
    '/index.html/x',
    '/.berth/reload',
  ]
  test.each(targets)('%s', async (target) => {
    await using files = await fileSite()
    for (const path of ['.env', 'a/.git/config', '.well-known/.env', 'a/.well-known/x'])
      files.put(path, SECRET)
    files.put('index.html', 'home')
    symlinkSync(files.outside, join(files.root, 'link'))
    symlinkSync(join(files.outside, 'secret.txt'), join(files.root, 'file'))
    symlinkSync('../../../../outside', join(files.root, 'a/link'))
    const answer = await files.raw(target)
    expect(answer).toStartWith('HTTP/1.1 404 ')
    expect(answer).not.toContain(SECRET)
  })

  test('a link that comes to lead out of the workspace is not followed, though its file was answered before', async () => {
    await using files = await fileSite()
    files.put('real/a.txt', 'inside')
    writeFileSync(join(files.outside, 'a.txt'), SECRET)
    await Bun.sleep(150)
    for (let round = 0; round < 3; round++) {
      expect(await (await files.fetch('/real/a.txt')).text()).toBe('inside')
    }
    renameSync(join(files.root, 'real'), join(files.root, 'moved'))
    symlinkSync(files.outside, join(files.root, 'real'))
    expect((await files.fetch('/real/a.txt')).status).toBe(404)
    expect(await (await files.fetch('/moved/a.txt')).text()).toBe('inside')
  })

  test('a link inside the workspace is followed', async () => {
    await using files = await fileSite()
    files.put('real.txt', 'inside')
    symlinkSync('real.txt', join(files.root, 'link.txt'))
    symlinkSync('/workspace/projects/demo', join(files.root, 'self'))
    linkSync(join(files.root, 'real.txt'), join(files.root, 'hard.txt'))
    for (const path of ['/link.txt', '/self/self/real.txt', '/hard.txt']) {
      expect(await (await files.fetch(path)).text()).toBe('inside')
    }
  })
})

test('an app and files take turns under one port, on one connection', async () => {
  await using backend = app(() => new Response('from the app'))
  await using files = await fileSite()
  files.put('index.html', 'from a file')
  const upstreams = [backend.upstream, { kind: 'files', serve: serveFilesOf(files) }] as const
  using client = await Raw.to(files.site.port)
  for (let round = 0; round < 6; round++) {
    files.site.site.setUpstream(upstreams[round % 2] ?? backend.upstream)
    client.send(get('/'))
    expect(await client.until(round % 2 === 0 ? 'from the app' : 'from a file')).toStartWith('HTTP/1.1 200')
  }
})

const serveFilesOf = (files: FileSite) =>
  serveFiles(new LocalWorkspace(join(files.root, '../..')), 'projects/demo', { fallback: false })
