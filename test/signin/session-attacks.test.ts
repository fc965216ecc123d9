import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser, BrowserContext } from 'playwright-core'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { browserPath, launchBrowser } from '../support/browser.ts'
import { linkOf } from '../support/visitor.ts'

/** What a page tries with the instance at `base`, with the rights of the person who looks at it. Resolves to what worked. */
const ATTACK = `async (base, terminal, token) => {
  const worked = []
  const attempt = async (name, what) => {
    try {
      if (await what()) worked.push(name)
    } catch {}
  }
  const post = (path, init) => fetch(base + path, { method: 'POST', credentials: 'include', body: '{}', ...init })
  await attempt('read', async () => (await fetch(base + '/servers', { credentials: 'include' })).ok)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json'])
    for (const mode of ['cors', 'no-cors'])
      await attempt('post ' + type + ' ' + mode, async () =>
        (await post('/keys', { mode, headers: { 'content-type': type }, body: '{"label":"stolen"}' })).ok)
  for (const path of ['/servers', '/_berth/accounts'])
    await attempt('token ' + path, async () =>
      (await fetch(base + path, { credentials: 'include', headers: { 'x-berth-csrf': token } })).ok)
  await attempt('reset', async () => (await post('/_berth/reset', { mode: 'no-cors' })).ok)
  await attempt('page', async () => (await (await fetch(base + '/', { credentials: 'include' })).text()).includes('csrf'))
  const socket = (path) => new Promise((resolve) => {
    const opened = new WebSocket(base.replace('http', 'ws') + path)
    opened.onopen = () => resolve(true)
    opened.onerror = () => resolve(false)
  })
  await attempt('socket', () => socket(terminal))
  await attempt('events', () => new Promise((resolve) => {
    const source = new EventSource(base + '/_berth/events', { withCredentials: true })
    source.onopen = () => resolve(true)
    source.onerror = () => { source.close(); resolve(false) }
  }))
  const framed = (fill) => new Promise((resolve) => {
    const frame = document.createElement('iframe')
    frame.name = 'victim' + Math.random()
    frame.onload = () => resolve(frame)
    document.body.append(frame)
    fill(frame)
    setTimeout(() => resolve(frame), 2000)
  })
  for (const [path, type] of [['/keys', 'text/plain'], ['/signout', 'application/x-www-form-urlencoded']])
    await framed((frame) => {
      const form = document.createElement('form')
      Object.assign(form, { method: 'post', action: base + path, enctype: type, target: frame.name })
      form.innerHTML = "<input name='{\\"label\\":\\"stolen\\",\\"x\\":\\"' value='\\"}'>"
      document.body.append(form)
      form.submit()
    })
  await framed((frame) => { frame.src = base + '/' })
  await attempt('script', () => new Promise((resolve) => {
    const script = document.createElement('script')
    script.src = base + '/servers'
    script.onload = () => resolve(true)
    script.onerror = () => resolve(false)
    document.body.append(script)
  }))
  await attempt('window', async () => {
    const other = window.open(base + '/', '_blank')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const text = other.document.documentElement.innerHTML
    other.close()
    return text.includes('csrf')
  })
  return worked
}`

describe.skipIf(browserPath === null)('in a browser that is signed in,', () => {
  let berth: TestBerth
  let browser: Browser
  let context: BrowserContext
  let terminal: string
  let elsewhere: ReturnType<typeof Bun.serve>
  beforeAll(async () => {
    berth = await testBerth()
    const server = await berth.server()
    const { body } = await berth.call('POST', `/servers/${server}/terminals`, { command: 'sleep 300' })
    terminal = `/servers/${server}/terminals/${body.terminal.id}/attach`
    browser = await launchBrowser()
    context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(await linkOf(berth))
    await page.close()
    elsewhere = Bun.serve({
      port: 0,
      hostname: '0.0.0.0',
      fetch: () =>
        new Response('<!doctype html><title>elsewhere</title><body>', {
          headers: { 'content-type': 'text/html' },
        }),
    })
  })
  afterAll(async () => {
    await elsewhere?.stop(true)
    await browser?.close()
    await berth?.[Symbol.asyncDispose]()
  })

  const csrf = async (): Promise<string> => {
    const page = await context.newPage()
    await page.goto(`${berth.info.base_url}/access`)
    const token = await page.locator('input[name=csrf]').first().inputValue()
    await page.close()
    return token
  }

  test('a page of the instance itself calls both APIs and opens sockets', async () => {
    const page = await context.newPage()
    await page.goto(`${berth.info.base_url}/access`)
    await page.goto(`${berth.info.base_url}/`)
    const token = JSON.stringify(await csrf())
    const statuses = await page.evaluate(`(async () => {
      const call = async (path, init) =>
        (await fetch(path, { ...init, headers: { 'x-berth-csrf': ${token}, 'content-type': 'application/json' } })).status
      const socket = await new Promise((resolve) => {
        const opened = new WebSocket(location.origin.replace('http', 'ws') + ${JSON.stringify(terminal)})
        opened.onopen = () => resolve('opened')
        opened.onerror = () => resolve('refused')
      })
      return [
        await call('/servers'),
        await call('/keys', { method: 'POST', body: '{"label":"own"}' }),
        await call('/_berth/accounts'),
        (await fetch('/servers')).status,
        socket,
      ]
    })()`)
    await page.close()
    expect(statuses).toEqual([200, 201, 200, 401, 'opened'])
  })

  // The same host with its cookies, and two sites to which the browser sends none.
  test.each(['127.0.0.1', 'localhost', 'evil.localhost'])(
    'a page of elsewhere reads, changes and opens nothing, even if it knows the token: on %s',
    async (host) => {
      const page = await context.newPage()
      await page.goto(`http://${host}:${elsewhere.port}/`)
      const [base, token] = [berth.info.base_url, await csrf()]
      const worked = await page.evaluate(
        `(${ATTACK})(${[base, terminal, token].map((one) => JSON.stringify(one)).join(', ')})`,
      )
      expect(worked).toEqual([])
      // The frame shows the browser's own page of an error in place of the dashboard.
      expect(page.frames().length).toBeGreaterThan(3)
      expect(page.frames().map((frame) => frame.url())).not.toContain(`${base}/`)
      await page.close()
      const { body } = await berth.call('GET', '/keys')
      expect(body.keys.map(({ label }: { label: string }) => label)).not.toContain('stolen')
      // Nobody was signed out.
      expect(await csrf()).toBe(token)
    },
    120_000,
  )
})
