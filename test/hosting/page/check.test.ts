import { afterAll, describe, expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import { checkPages, type PageFindings } from '../../../src/hosting/page/check.ts'
import { visitorOf } from '../../../src/hosting/page/visitor.ts'
import { appOn } from '../sites/support.ts'

/** What an app sends for a path: a page, or a response. */
type Sent = string | Response | ((request: Request) => Response | Promise<Response>)

const HTML = { 'content-type': 'text/html; charset=utf-8' }
const page = (text: string, status = 200) => new Response(text, { status, headers: HTML })
const to = (location: string, status = 302) => new Response(null, { status, headers: { location } })

/** The port of the app's own URL. It is that of no listener: nothing but the app itself is asked. */
const URL_PORT = 9

const servers: Bun.Server<undefined>[] = []
afterAll(() => Promise.all(servers.map((server) => server.stop(true))))

/** Checks an app, and returns what it was asked for, too. Paths that it lacks are 404 without a body. */
async function check(
  paths: Record<string, Sent>,
  options: { health?: string; kind?: string } = {},
): Promise<PageFindings & { asked: string[] }> {
  const asked: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { pathname, search } = new URL(request.url)
      asked.push(`${pathname}${search}`)
      const sent = paths[pathname] ?? new Response(null, { status: 404 })
      if (typeof sent === 'string') return page(sent)
      return typeof sent === 'function' ? sent(request) : (sent.clone() as Response)
    },
  })
  servers.push(server)
  return { ...(await findings(server.port ?? 0, options)), asked }
}

async function findings(
  port: number,
  options: { health?: string; kind?: string } = {},
): Promise<PageFindings> {
  const visit = visitorOf(appOn(port), `127.0.0.1:${URL_PORT}`)
  if (visit === null) throw new Error('an app can be visited')
  const { warnings, notes } = await checkPages({
    visit,
    url: `http://127.0.0.1:${URL_PORT}/`,
    slug: 'shop',
    health: '/',
    kind: 'Node.js (npm)',
    isFiles: false,
    signal: new AbortController().signal,
    ...options,
  })
  return { warnings, notes }
}

const DJANGO_400 = '<title>Bad Request (400)</title><body><h1>Bad Request (400)</h1><p></p></body>'

describe('berth warns of', () => {
  test.each<[name: string, paths: Record<string, Sent>, warning: RegExp]>([
    [
      '400',
      { '/': new Response('no', { status: 400 }) },
      /GET \/ with status 400\. .*127\.0\.0\.1 and \.localhost/,
    ],
    [
      '400 of Django without DEBUG',
      { '/': page(DJANGO_400, 400) },
      /status 400 \(Invalid HTTP_HOST header\)\. .* '127\.0\.0\.1' and '\.localhost' in ALLOWED_HOSTS/,
    ],
    [
      '400 of Django with DEBUG',
      { '/': page("DisallowedHost at /. Invalid HTTP_HOST header: '127.0.0.1:9'.", 400) },
      /status 400 \(Invalid HTTP_HOST header\)/,
    ],
    [
      '400 of Starlette',
      { '/': new Response('Invalid host header', { status: 400 }) },
      /400\. .*allowed_hosts/,
    ],
    [
      '403 of Rails',
      { '/': page('<h1>Blocked hosts: 127.0.0.1:9</h1>', 403) },
      /403 \(Blocked host\).*config\.hosts/,
    ],
    ['403 with a page', { '/': page('<h1>Forbidden</h1>', 403) }, /GET \/ with status 403/],
    ['404 with a page', { '/': page('<pre>Cannot GET /</pre>', 404) }, /GET \/ with status 404/],
    ['405 with a page', { '/': page('<h1>Method Not Allowed</h1>', 405) }, /GET \/ with status 405/],
    ['another 4xx', { '/': new Response(null, { status: 410 }) }, /GET \/ with status 410/],
    ['500', { '/': page('<h1>Server Error (500)</h1>', 500) }, /status 500\. Django prints no traceback/],
    ['503', { '/': new Response('{}', { status: 503 }) }, /GET \/ with status 503\. Its log says why/],
    [
      'what a redirect leads to',
      { '/': to('/login'), '/login': page('x', 500) },
      /GET \/, which leads to \/login, with status 500/,
    ],
    [
      'a redirect to https',
      { '/': to('https://127.0.0.1:9/', 301) },
      /redirects \/ to https:\/\/127\.0\.0\.1:9\/, .*http alone/,
    ],
    [
      'a redirect to https later',
      { '/': to('/a'), '/a': to('https://127.0.0.1:9/a') },
      /https:\/\/127\.0\.0\.1:9\/a/,
    ],
    ['a redirect to https without the port', { '/': to('https://localhost/') }, /https:\/\/localhost\//],
    [
      'a redirect to https at the other name',
      { '/': to('https://shop.localhost:4747/') },
      /https:\/\/shop\.localhost/,
    ],
    [
      'a style that is missing',
      { '/': '<link rel=stylesheet href=/a.css>' },
      /page \/ asks for .*: \/a\.css \(status 404\)\./,
    ],
    [
      'a script that is a page',
      { '/': '<script src="app.js?v=1"></script>', '/app.js': '<p>home</p>' },
      /: \/app\.js \(a page\)\./,
    ],
    [
      'what a page below a redirect lacks',
      { '/': to('/en/'), '/en/': '<script src=app.js></script>' },
      /The page \/en\/ asks for .*: \/en\/app\.js \(status 404\)/,
    ],
    [
      'several, of which it names five',
      { '/': [1, 2, 3, 4, 5, 6, 7].map((number) => `<script src=/${number}.js></script>`).join('') },
      /\/1\.js \(status 404\), .*, \/5\.js \(status 404\) and 2 more\./,
    ],
  ])('%s', async (_, paths, warning) => {
    const { warnings } = await check(paths)
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatch(warning)
  })

  test('the health page, too, each once', async () => {
    const paths = { '/': page('a', 500), '/up': page('b', 404) }
    const { warnings, asked } = await check(paths, { health: '/up' })
    expect(warnings.map((text) => /GET \S+ with status \d+/.exec(text)?.[0])).toEqual([
      'GET / with status 500',
      'GET /up with status 404',
    ])
    expect(asked).toEqual(['/', '/up'])
  })

  test('missing styles of Django with its remedy', async () => {
    const paths = { '/': '<link rel=stylesheet href=/static/site.css>' }
    expect((await check(paths, { kind: 'Python (Django)' })).warnings[0]).toContain('STATIC_ROOT')
  })
})

describe('berth does not warn of', () => {
  test.each<[name: string, paths: Record<string, Sent>]>([
    [
      'a page',
      { '/': '<script src=/a.js></script><link rel=icon href=/none.ico>', '/a.js': new Response('1') },
    ],
    ['401', { '/': page('<h1>Sign in</h1>', 401) }],
    ['404 without a body', {}],
    ['404 as JSON', { '/': Response.json({ error: 'not_found' }, { status: 404 }) }],
    ['403 as text', { '/': new Response('no', { status: 403, headers: { 'content-type': 'text/plain' } }) }],
    ['405 as JSON', { '/': Response.json({}, { status: 405 }) }],
    ['a redirect that ends at a page', { '/': to('a'), '/a': to('/b?x=1', 307), '/b': 'b' }],
    ['a redirect to its other name', { '/': to('http://shop.localhost:4747/a'), '/a': 'a' }],
    ['a redirect without an end', { '/': to('/') }],
    ['a script of another origin', { '/': '<script src=https://cdn.invalid/a.js></script>' }],
    ['a script in a comment', { '/': '<!-- <script src=/none.js></script> -->' }],
    ['an empty page', { '/': page('') }],
    ['204', { '/': new Response(null, { status: 204 }) }],
  ])('%s', async (_, paths) => {
    expect((await check(paths)).warnings).toEqual([])
  })
})

test('an app is asked as by a visitor, at most three redirects far and for twenty scripts and styles', async () => {
  let headers = new Headers()
  const scripts = Array.from({ length: 30 }, (_, at) => `<script src=/${at}.js></script>`).join('')
  const { asked } = await check({
    '/': (request) => {
      headers = request.headers
      return page(scripts)
    },
  })
  expect(asked).toHaveLength(21)
  expect(headers.get('user-agent')).toBe('berth-health')
  expect(headers.get('host')).toBe(`127.0.0.1:${URL_PORT}`)
  expect(headers.get('x-forwarded-host')).toBe(`127.0.0.1:${URL_PORT}`)
  expect(headers.get('x-forwarded-proto')).toBe('http')
  const far = await check({
    '/': to('/1'),
    '/1': to('/2'),
    '/2': to('/3'),
    '/3': to('/4'),
    '/4': page('x', 500),
  })
  expect([far.asked, far.warnings]).toEqual([['/', '/1', '/2', '/3'], []])
})

test('another origin is named and never asked', async () => {
  const other: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      other.push(request.url)
      return page('x', 500)
    },
  })
  servers.push(server)
  const origin = `http://127.0.0.1:${server.port}`
  const redirected = await check({ '/': to(`${origin}/login`) })
  expect(redirected.notes).toEqual([`The app redirects / to ${origin}/login, which berth does not ask.`])
  const loading = await check({
    '/': `<base href="${origin}/"><script src=a.js></script><link rel=stylesheet href=b.css>`,
  })
  expect(loading.notes).toEqual([
    `The page / loads ${origin}/a.js, which berth does not ask, and a browser may not reach.`,
    `The page / loads ${origin}/b.css, which berth does not ask, and a browser may not reach.`,
  ])
  expect([redirected.warnings, loading.warnings, loading.asked, other]).toEqual([[], [], ['/'], []])
})

test('an app that takes its time is waited for 2 s and not warned of', async () => {
  const over = Promise.withResolvers<Response>()
  const began = performance.now()
  const { warnings } = await check({ '/': () => over.promise }, { health: '/up' })
  const took = performance.now() - began
  over.resolve(page('late'))
  expect(warnings).toEqual([])
  expect(took).toBeGreaterThan(1_900)
  expect(took).toBeLessThan(4_000)
})

test.each<[name: string, response: string]>([
  ['in chunks', 'HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'],
  ['with its length', 'HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nabc'],
  [
    'after an interim one',
    'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n',
  ],
])('a response %s is read to its end, though the connection stays open', async (_, response) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => socket.write(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const began = performance.now()
  const { warnings } = await findings(typeof address === 'object' && address !== null ? address.port : 0)
  expect(warnings).toHaveLength(1)
  expect(performance.now() - began).toBeLessThan(1_500)
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => server.close(resolve))
})

test('a response that is not HTTP gives no warning, and a page of any size is read in part', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end('+OK\r\n\r\nhello'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  expect(await findings(typeof address === 'object' && address !== null ? address.port : 0)).toEqual({
    warnings: [],
    notes: [],
  })
  await new Promise((resolve) => server.close(resolve))
  let sent = 0
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 64 * 1024
      controller.enqueue(new Uint8Array(64 * 1024).fill(32))
    },
  })
  const { warnings } = await check({ '/': () => new Response(endless, { status: 410, headers: HTML }) })
  expect(warnings).toHaveLength(1)
  expect(sent).toBeLessThan(64 * 1024 * 1024)
})
