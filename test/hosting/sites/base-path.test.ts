import { describe, expect, test } from 'bun:test'
import { type FileSite, fileSite } from './file-site.ts'

/** A page that loads a script and a style. */
const page = (script: string, style: string, head = '') =>
  `<!doctype html><html><head>${head}<link rel="stylesheet" crossorigin href="${style}"></head>` +
  `<body><script type="module" crossorigin src="${script}"></script></body></html>`

/** Puts the build of a site there whose page asks for its files below a base path. */
function build(site: FileSite, base: string): void {
  site.put('index.html', page(`${base}assets/index-x.js`, `${base}assets/index-x.css`))
  site.put('assets/index-x.js', 'script')
  site.put('assets/index-x.css', 'style')
  site.put('guide/index.html', 'guide')
  site.put('about.html', 'about')
}

/** Returns the status, and the address or the content. */
async function ask(site: FileSite, path: string, init?: RequestInit): Promise<[number, string]> {
  const response = await site.fetch(path, init)
  return [response.status, response.headers.get('location') ?? (await response.text())]
}

describe('files that were built for a base path', () => {
  test.each(['/my-repo/', '/group/my-repo/', '/caf%C3%A9/', '/v1.2/'])(
    'are served below %s',
    async (base) => {
      await using site = await fileSite()
      build(site, base)
      expect(await ask(site, '/?x=1')).toEqual([302, `${base}?x=1`])
      expect((await site.fetch(base)).headers.get('content-type')).toStartWith('text/html')
      expect(await ask(site, `${base}assets/index-x.js`)).toEqual([200, 'script'])
      expect(await ask(site, `${base}assets/index-x.css`)).toEqual([200, 'style'])
      expect(await ask(site, `${base}about`)).toEqual([200, 'about'])
      // Redirects stay below it.
      expect(await ask(site, base.slice(0, -1))).toEqual([302, base])
      expect(await ask(site, `${base}guide`)).toEqual([301, `${base}guide/`])
      expect(await ask(site, `${base}about/`)).toEqual([301, `${base}about`])
      expect(await ask(site, `${base}guide/`)).toEqual([200, 'guide'])
      expect((await site.fetch(`${base}none`)).status).toBe(404)
      // They are where they were, too.
      expect(await ask(site, '/assets/index-x.js')).toEqual([200, 'script'])
      expect(await ask(site, '/about')).toEqual([200, 'about'])
      expect((await site.fetch('/index.html')).status).toBe(200)
      expect((await site.fetch('/', { method: 'HEAD' })).status).toBe(302)
    },
  )

  test('answer every page below it with the index of a single-page app', async () => {
    await using site = await fileSite({ fallback: true })
    build(site, '/my-repo/')
    const [status, text] = await ask(site, '/my-repo/any/page', { headers: { accept: 'text/html' } })
    expect([status, text.includes('/my-repo/assets/index-x.js')]).toEqual([200, true])
  })

  test('are found by <base href>, with and without scripts', async () => {
    await using site = await fileSite()
    site.put('index.html', page('main.js', 'styles.css', '<base href="/my-app/">'))
    site.put('main.js', 'script')
    site.put('styles.css', 'style')
    expect(await ask(site, '/')).toEqual([302, '/my-app/'])
    expect(await ask(site, '/my-app/main.js')).toEqual([200, 'script'])
    site.put('index.html', '<base href="/other/"><a href="about">About</a>')
    expect(await ask(site, '/')).toEqual([302, '/other/'])
  })

  test('are found by preloaded modules alone, and by the first name that makes a path that of a file', async () => {
    await using site = await fileSite()
    site.put('index.html', '<link rel="modulepreload" href="/base/_app/entry/start.js">')
    site.put('_app/entry/start.js', 'script')
    site.put('start.js', 'another')
    expect(await ask(site, '/')).toEqual([302, '/base/'])
  })

  test('have a page at the base path whose name another page has', async () => {
    await using site = await fileSite()
    build(site, '/docs/')
    site.put('docs.html', 'docs')
    expect((await ask(site, '/docs/'))[1]).toContain('/docs/assets/index-x.js')
    expect(await ask(site, '/docs/docs')).toEqual([200, 'docs'])
  })

  test('are served so as soon as the build is complete', async () => {
    await using site = await fileSite()
    site.put('index.html', page('/my-repo/a.js', '/my-repo/a.css'))
    expect((await site.fetch('/')).status).toBe(200)
    site.put('a.js', 'script')
    expect(await ask(site, '/')).toEqual([302, '/my-repo/'])
    site.put('a.css', 'style')
    site.put('index.html', page('./a.js', '/a.css'))
    expect((await site.fetch('/')).status).toBe(200)
  })
})

test.each([
  ['its files are where the page asks for them', page('/assets/index-x.js', '/assets/index-x.css')],
  ['its links are relative', page('./assets/index-x.js', 'assets/index-x.css')],
  ['its files are nowhere', page('/my-repo/none.js', '/my-repo/none.css')],
  [
    'its files are those of another origin',
    page('https://a.example/r/about.html', '//a.example/r/about.html'),
  ],
  ['two base paths are possible', page('/one/assets/index-x.js', '/two/assets/index-x.css')],
  ['the base path is a directory', page('/guide/assets/index-x.js', '/guide/assets/index-x.css')],
  ['the base path is hidden', page('/.base/assets/index-x.js', '/.base/assets/index-x.css')],
  ['it only speaks of scripts', `<!-- ${page('/x/assets/index-x.js', '/x/assets/index-x.css')} -->`],
  ['it loads nothing', '<h1>home</h1><base href="/">'],
])('a site has no base path if %s', async (_, index) => {
  await using site = await fileSite()
  build(site, '/')
  site.put('index.html', index)
  expect(await ask(site, '/')).toEqual([200, index])
})

test('files below a base path that are hidden are not there', async () => {
  await using site = await fileSite({ isHidden: (names) => names[0] === 'projects' })
  build(site, '/my-repo/')
  site.put('projects/shop/key.txt', 'key')
  expect((await site.fetch('/my-repo/about')).status).toBe(200)
  expect((await site.fetch('/my-repo/projects/shop/key.txt')).status).toBe(404)
  expect((await site.fetch('/projects/shop/key.txt')).status).toBe(404)
})
