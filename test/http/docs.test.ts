import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { operationCommands } from '../../src/cli/operation-commands.ts'
import {
  API_OPERATIONS,
  CONTROL_OPERATIONS,
  type IndexedOperation,
  listOperations,
} from '../../src/contract/operations.ts'
import { berthForTests } from '../support/berth.ts'
import { browserPath, hindrances, launchBrowser, showIn } from '../support/browser.ts'
import { NARROW, WIDE } from '../support/dashboard.ts'
import { signInTo } from '../support/pages.ts'
import { linkOf } from '../support/visitor.ts'
import { watchedPage } from '../support/watched-page.ts'

const berth = await berthForTests({ dependencies: { commands: async () => operationCommands() } })

/** Each reference with the operations that it has to show. */
const REFERENCES = [
  ['/docs', listOperations(API_OPERATIONS)],
  ['/_berth/docs', listOperations(CONTROL_OPERATIONS)],
] as const

const read = async (path: string): Promise<string> => (await fetch(`${berth.info.base_url}${path}`)).text()

/** The part of a page about one operation. */
const sectionOf = (page: string, { id }: Pick<IndexedOperation, 'id'>): string => {
  const [, ...after] = page.split(`<section class="operation" id="${id}"`)
  return after.join('').split('</section>')[0] ?? ''
}

/** A text without elements, and with characters in place of entities. */
const textOf = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&quot;', '"')
    .replaceAll('&#x27;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

describe.each(REFERENCES)('GET %s', (path, operations) => {
  test('is compressed for clients that take it, unless it has words of the request', async () => {
    const load = (query: string, coding: string): Promise<Response> =>
      fetch(`${berth.info.base_url}${path}${query}`, {
        headers: { 'accept-encoding': coding },
        decompress: false,
      })
    const plain = await load('', 'identity')
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(plain.headers.get('vary')).toContain('accept-encoding')
    const whole = await plain.text()
    const small = await load('', 'br, gzip;q=0.5')
    expect(small.headers.get('content-encoding')).toBe('gzip')
    const bytes = new Uint8Array(await small.arrayBuffer())
    expect(bytes.length).toBeLessThan(whole.length / 5)
    expect(new TextDecoder().decode(Bun.gunzipSync(bytes))).toBe(whole)
    expect((await load('', 'gzip;q=0')).headers.get('content-encoding')).toBeNull()
    expect((await load('?q=list', 'gzip')).headers.get('content-encoding')).toBeNull()
  })

  test('is a page for anybody that runs one script of the instance and reaches only the instance', async () => {
    const response = await fetch(`${berth.info.base_url}${path}`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self';")
    expect(policy).toContain("connect-src 'self';")
    expect(policy).not.toMatch(/https?:|\*|unsafe/)
    const html = await response.text()
    expect([...html.matchAll(/<script/g)].length).toBe(1)
    expect(html).not.toMatch(/<style| style="| on\w+="/)
    const loaded = [...html.matchAll(/ (?:src|href)="([^"#]+)"/g)].map(([, url = '']) => url)
    expect(loaded.filter((url) => !url.startsWith('/'))).toEqual([])
  })

  test('has every operation: a link to it, its method, path and access, its fields, its responses, samples', async () => {
    const page = await read(path)
    const document = JSON.parse(await read(path.replace('docs', 'openapi.json')))
    for (const operation of operations) {
      const { id, method } = operation
      expect(page).toContain(`<a href="#${id}"`)
      const section = sectionOf(page, operation)
      const text = textOf(section)
      const declared = document.paths[operation.path][method.toLowerCase()]
      expect(text).toContain(`${method} ${operation.path} `)
      expect(section).toMatch(
        /<span class="access">(no credential|API key|API key of the whole account|admin token)</,
      )
      expect(text).toContain(declared.summary)
      const statuses = Object.keys(declared.responses).filter((status) => status !== 'default')
      for (const status of statuses) expect(text).toContain(status)
      const parameters = (declared.parameters ?? []).filter((one: object) => 'name' in one)
      const name = declared.requestBody?.content['application/json']?.schema.$ref?.split('/').at(-1)
      const fields = [
        ...parameters.map((one: { name: string }) => one.name),
        ...Object.keys(document.components.schemas[name]?.properties ?? {}),
      ]
      for (const field of fields) expect(section).toContain(`<code class="field">${field}</code>`)
      if ('101' in declared.responses) expect(text).toContain(`new WebSocket(`)
      else expect(text).toContain(`curl `)
      expect(text).toContain(berth.info.base_url.replace('http', '101' in declared.responses ? 'ws' : 'http'))
    }
  })

  test('with ?q= it has only the operations with the words, for browsers that run no scripts', async () => {
    const page = await read(`${path}?q=GET+LIST+%3Cb%3E`)
    expect(page).toContain('<strong>GET LIST &lt;b&gt;</strong>')
    expect(page).not.toContain('<section class="operation"')
    const some = await read(`${path}?q=health`)
    const shown = operations.filter(({ id }) => some.includes(`<section class="operation" id="${id}"`))
    expect(shown.length).toBeGreaterThan(0)
    expect(shown.length).toBeLessThan(operations.length / 2)
  })
})

test('the guide and the references lead to each other, to pages and operations that exist', async () => {
  const references = await Promise.all(REFERENCES.map(([path]) => read(path)))
  const pages = references.flatMap((page) => page.match(/\/docs\/guide\/[\w-]+/g) ?? [])
  expect(new Set(pages).size).toBeGreaterThan(10)
  for (const path of new Set(pages)) {
    expect([path, (await fetch(`${berth.info.base_url}${path}`)).status]).toEqual([path, 200])
  }
  const guide = (
    await Promise.all(['api', 'tasks', 'waiting'].map((name) => read(`/docs/guide/${name}`)))
  ).join()
  const targets = [...guide.matchAll(/<a href="(\/(?:_berth\/)?docs)#([^"]+)"><code>/g)]
  expect(targets.length).toBeGreaterThan(10)
  for (const [, path = '', id] of targets) {
    expect(references[path === '/docs' ? 0 : 1]).toContain(`<section class="operation" id="${id}"`)
  }
})

test('the script and the styles are kept by browsers for as long as they are the same', async () => {
  const html = await read('/docs')
  for (const path of [...html.matchAll(/ (?:src|href)="(\/(?:docs|pages)\/[^"]+\?v=[^"]+)"/g)].map(
    ([, url = '']) => url,
  )) {
    const file = await fetch(`${berth.info.base_url}${path}`)
    expect([path, file.status]).toEqual([path, 200])
    expect(file.headers.get('cache-control')).toContain('immutable')
    const etag = file.headers.get('etag') ?? ''
    expect(path).toContain(JSON.parse(etag.replace(/^W\//, '')))
    const again = await fetch(`${berth.info.base_url}${path}`, { headers: { 'if-none-match': etag } })
    expect(again.status).toBe(304)
  }
})

test('the command lines are those of commands that berth has, with their options', () => {
  const lines = operationCommands()
  const known = [...listOperations(API_OPERATIONS), ...listOperations(CONTROL_OPERATIONS)].map(({ id }) => id)
  expect([...lines.keys()].filter((id) => !known.includes(id))).toEqual([])
  expect(known.filter((id) => lines.has(id)).length).toBeGreaterThan(80)
  expect(lines.get('servers.create')).toMatch(/^berth servers create .*\[--tier TIER\]/)
  expect(lines.get('servers.act')?.split('\n')).toContain('berth servers restart [SERVER]')
})

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('the page in a browser (needs Chromium)', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  /** Opens the form of an operation and returns its part of the page. */
  async function tryOut(page: Page, id: string) {
    const section = page.locator(`[id="${id}"]`)
    await section.getByRole('button', { name: /^Try it/ }).click()
    return section
  }

  test('a part of it hinders nobody, fits in every look, and asks nobody but its instance', async () => {
    for (const [path, id] of [
      ['/docs?q=keys', 'keys.create'],
      ['/_berth/docs?q=clock', 'control.clock.move'],
    ] as const) {
      await using watched = await watchedPage(browser)
      const { page, requests, problems } = watched
      await page.goto(`${berth.info.base_url}${path}`)
      // A form too, which the script makes.
      await tryOut(page, id)
      for (const look of [NARROW, WIDE]) {
        await showIn(page, look)
        expect(await hindrances(page)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(look.viewport.width)
      }
      expect(problems).toEqual([])
      expect(new Set(requests.map((url) => new URL(url).origin))).toEqual(new Set([berth.info.base_url]))
    }
  })

  test('the whole page hinders nobody', async () => {
    await using watched = await watchedPage(browser, { viewport: { width: 1280, height: 900 } })
    const { page } = watched
    await page.goto(`${berth.info.base_url}/docs`)
    // The colours of its 6,000 texts and links take longer than all else, and those of each kind are in its parts above.
    expect(await hindrances(page, ['color-contrast', 'link-in-text-block'])).toEqual([])
  })

  test('operations are folded to a line each, and open by a click, the address, the contents and the search', async () => {
    await using watched = await watchedPage(browser, { viewport: WIDE.viewport })
    const { page, problems } = watched
    await page.goto(`${berth.info.base_url}/docs#files.write`)
    const open = async (): Promise<string[]> =>
      page.locator('.operation:has(> details[open])').evaluateAll((all) => all.map(({ id }) => id))
    await page.locator('[id="files.write"]').getByText('curl -X PUT').waitFor()
    expect(await open()).toEqual(['files.write'])
    // What is folded takes a line: the page is as long as a list.
    const height = await page.evaluate<number>('document.documentElement.scrollHeight')
    expect(height / (await page.locator('.operation').count())).toBeLessThan(100)
    const top = async (id: string): Promise<number> =>
      (await page.locator(`[id="${id}"]`).boundingBox())?.y ?? Number.NaN
    expect(Math.abs(await top('files.write'))).toBeLessThan(200)
    await page.locator('.contents a[href="#keys.create"]').click()
    await page.locator('[id="keys.create"]').getByText('curl -X POST').waitFor()
    await page.locator('[id="keys.create"] summary').first().click()
    await page.locator('[id="keys.list"] summary').first().click()
    await page.waitForURL('**/docs#keys.list')
    expect(await open()).toEqual(['files.write', 'keys.list'])
    // The address names it already: it opens all the same.
    await page.locator('.contents a[href="#keys.create"]').click()
    await page.locator('.contents a[href="#keys.create"]').click()
    await page.locator('[id="keys.create"]').getByText('curl -X POST').waitFor()
    expect(problems).toEqual([])
  })

  test('without JavaScript everything is there to read, and nothing is offered that needs it', async () => {
    await using watched = await watchedPage(browser, { javaScriptEnabled: false })
    const { page } = watched
    await page.goto(`${berth.info.base_url}/docs#servers.create`)
    const section = page.locator('[id="servers.create"]')
    await section.getByText('curl -X POST').waitFor()
    expect(await section.getByRole('button').count()).toBe(0)
    await section.getByText('JavaScript', { exact: true }).click()
    await section.getByText('const response = await fetch').waitFor()
    await page.getByLabel('Search operations').fill('allowed_server_ids')
    await page.keyboard.press('Enter')
    await page.getByRole('status').getByText('Only what has').waitFor()
    expect(await page.locator('[id="keys.create"]').isVisible()).toBe(true)
    expect(await page.locator('[id="servers.list"]').count()).toBe(0)
  })

  test('by the keyboard alone: search for a field, go to the operation, choose a sample, send a request', async () => {
    await using watched = await watchedPage(browser)
    const { page, problems } = watched
    await page.goto(`${berth.info.base_url}/docs`)
    await page.keyboard.press('/')
    await page.keyboard.type('nothing-has-this')
    await page.getByText('0 found').waitFor()
    expect(await page.locator('.contents ul ul li:visible').count()).toBe(0)
    await page.keyboard.press('Escape')
    await page.keyboard.type('allowed_server_ids keys.create')
    await page.locator('.contents .hits', { hasText: 'allowed_server_ids' }).first().waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(/#keys\.create$/)
    await page.locator('#credential').focus()
    await page.keyboard.type(berth.info.api_key)
    const section = page.locator('[id="keys.create"]')
    await section.getByRole('radio', { name: 'curl' }).focus()
    await page.keyboard.press('ArrowRight')
    expect(await section.getByText('berth keys create <LABEL>').isVisible()).toBe(true)
    // What is chosen once is shown everywhere.
    expect(await page.locator('[id="servers.create"] input[value="berth"]').isChecked()).toBe(true)
    await section.getByRole('button', { name: /^Try it/ }).focus()
    await page.keyboard.press('Enter')
    await section.getByLabel('Body').fill('{"label": "From the page"}')
    await section.getByRole('button', { name: 'Send' }).focus()
    await page.keyboard.press('Enter')
    await section.getByText(/^201/).last().waitFor()
    await section.locator('.response pre', { hasText: 'From the page' }).waitFor()
    expect(problems).toEqual([])
    expect(
      await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie'),
    ).not.toContain(berth.info.api_key)
  })

  test('a response is text: what looks like HTML in it never becomes an element', async () => {
    const attack = '<img src=x onerror="document.title=1">'
    const id = await berth.server({ task: attack })
    await using watched = await watchedPage(browser)
    const { page, problems } = watched
    await signInTo(page, berth, '/docs?q=servers.get')
    const section = await tryOut(page, 'servers.get')
    await section.getByLabel('serverId').fill(id)
    await section.getByRole('button', { name: 'Send' }).click()
    await section.locator('.response pre', { hasText: 'onerror' }).waitFor()
    expect(await page.locator('.response img').count()).toBe(0)
    expect(await page.title()).toBe('API reference · berth')
    expect(problems).toEqual([])
  })

  test('a browser that is signed in needs no key: its session counts, on each page as far as its rights go', async () => {
    await using watched = await watchedPage(browser)
    const { page } = watched
    for (const [path, id] of [
      ['/docs', 'servers.list'],
      ['/_berth/docs', 'control.accounts.list'],
    ] as const) {
      const part = `${path}?q=${id}`
      if (path === '/docs') await signInTo(page, berth, part)
      else await page.goto(`${berth.info.base_url}${part}`)
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
      const section = await tryOut(page, id)
      await section.getByRole('button', { name: 'Send' }).click()
      await section.locator('.response .status', { hasText: '200' }).waitFor()
    }
  })

  test('pages for everybody have the same links at the same place, and the button to sign out', async () => {
    await using watched = await watchedPage(browser)
    const { page } = watched
    await signInTo(page, berth, '/access')
    const places: unknown[] = []
    for (const path of [
      '/access',
      '/docs',
      '/_berth/docs',
      '/docs/guide',
      '/docs/guide/api',
      '/docs/guide?q=faults',
    ]) {
      await page.goto(`${berth.info.base_url}${path}`)
      await page.locator('header').getByRole('button', { name: 'Sign out' }).waitFor()
      places.push(await page.getByRole('navigation', { name: 'Pages' }).boundingBox())
    }
    expect(new Set(places.map((place) => JSON.stringify(place))).size).toBe(1)
  })

  test('without a key and without the instance’s rights the page sends no session, and the refusal is shown', async () => {
    const { body } = await berth.control('POST', '/accounts', { label: 'Another' })
    await using watched = await watchedPage(browser)
    const { page } = watched
    await page.goto(await linkOf(berth, body.id, '/_berth/docs?q=control.accounts.list'))
    await page.getByLabel('Admin token to try operations with').waitFor()
    const section = await tryOut(page, 'control.accounts.list')
    await section.getByRole('button', { name: 'Send' }).click()
    await section.locator('.response .status', { hasText: '401' }).waitFor()
  })

  test('a sample is copied by its button, and a form is closed by the button that opened it', async () => {
    await using watched = await watchedPage(browser, { permissions: ['clipboard-read', 'clipboard-write'] })
    const { page } = watched
    await page.goto(`${berth.info.base_url}/docs?q=servers.list#servers.list`)
    const section = page.locator('[id="servers.list"]')
    await section.getByRole('button', { name: 'Copy curl of servers.list' }).click()
    await section.getByText('Copied').waitFor()
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(
      `curl "${berth.info.base_url}/servers" \\\n  -H "Authorization: Bearer $BERTH_API_KEY"`,
    )
    await tryOut(page, 'servers.list')
    expect(await section.locator('form').count()).toBe(1)
    await tryOut(page, 'servers.list')
    expect(await section.locator('form').count()).toBe(0)
  })
})
