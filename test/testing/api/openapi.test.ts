import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import type { OpenApiDocument } from '../../../src/contract/openapi/model.ts'
import { describeControl, describedControl } from '../../../src/instance/describe.ts'
import { berthForTests } from '../../support/berth.ts'
import { browserPath, launchBrowser } from '../../support/browser.ts'
import { checkControlAnswer } from '../../support/control-document.ts'
import { followsTheRules, operationsOf } from '../../support/openapi-rules.ts'
import { watchedPage } from '../../support/watched-page.ts'

const document = await describeControl()
const operations = operationsOf(document)

const berth = await berthForTests()

describe("the control API's document", () => {
  followsTheRules(document)

  test('has every route but the document itself and its page', async () => {
    const { routes } = await describedControl()
    const hidden = routes.filter(({ hooks }) => hooks.detail?.hide)
    expect(hidden.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'GET /_berth/docs',
      'GET /_berth/openapi.json',
    ])
    expect(operations.length).toBe(routes.length - hidden.length)
    for (const { operationId, path } of operations) {
      expect(operationId).toMatch(/^[a-z][A-Za-z]*(\.[a-z][A-Za-z]*)?$/)
      expect(path).toStartWith('/_berth/')
    }
  })

  test('lists what can go wrong: with input 400, with a body 413, with an id 404', () => {
    const missing = operations.flatMap(({ operationId, parameters = [], requestBody, responses, path }) => {
      const input = requestBody || parameters.some((one) => 'in' in one && one.in === 'query')
      const expected = [
        403,
        ...(input ? [400] : []),
        ...(requestBody ? [413] : []),
        ...(path.includes('Id}') ? [404] : []),
      ]
      return expected.filter((status) => !(status in responses)).map((status) => `${operationId} ${status}`)
    })
    expect(missing).toEqual([])
  })

  test('lists what names of inboxes and the end of berth can make of a call', () => {
    const statusesOf = (id: string) =>
      Object.keys(operations.find(({ operationId }) => operationId === id)?.responses ?? {})
    expect(statusesOf('inbox.clear')).toContain('400')
    for (const id of ['instance.wait', 'instance.reset', 'snapshots.restore'])
      expect(statusesOf(id)).toContain('503')
  })

  test('closes every body, so that a misspelt field is refused', () => {
    const open = operations.filter(({ requestBody }) => {
      const schema = requestBody?.content['application/json']?.schema
      const name = String(schema?.$ref ?? '').replace('#/components/schemas/', '')
      const shape = name ? document.components.schemas[name] : schema
      return shape !== undefined && shape.additionalProperties !== false && !shape.anyOf && !shape.oneOf
    })
    expect(open.map(({ operationId }) => operationId)).toEqual([])
  })

  test('what it says of credentials is so: 401 without one, but where none is needed', async () => {
    expect(document.security).toEqual([{ adminToken: [] }])
    for (const { method, path, operationId, security } of operations) {
      const { status } = await fetch(`${berth.info.base_url}${path.replaceAll(/\{\w+\}/g, 'none')}`, {
        method,
      })
      expect([operationId, status === 401]).toEqual([operationId, security === undefined])
    }
  })

  test('is answered to anybody on this machine, and is the very one that needs no instance', async () => {
    const response = await fetch(`${berth.info.base_url}/_berth/openapi.json`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
    expect((await response.json()) as OpenApiDocument).toEqual(document)
    const headers = { 'if-none-match': response.headers.get('etag') ?? '' }
    expect((await fetch(`${berth.info.base_url}/_berth/openapi.json`, { headers })).status).toBe(304)
  })

  test('what checks the answers of other tests refuses what the document does not say', async () => {
    const check = (status: number, body: unknown) =>
      checkControlAnswer('GET', '/_berth/clock', { status, body })
    await expect(check(418, {})).rejects.toThrow('clock.read answered 418')
    await expect(check(200, { now: 'x' })).rejects.toThrow("must have required property 'frozen'")
    await checkControlAnswer('GET', '/_berth/nowhere', { status: 404, body: {} })
  })
})

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(browserPath === null)('/_berth/docs in a browser (needs Chromium)', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  test('shows the calls, and a request sent from it is answered though it carries an Origin', async () => {
    await using watched = await watchedPage(browser, { viewport: { width: 1280, height: 900 } })
    const { page, requests, problems } = watched
    await page.goto(`${berth.info.base_url}/_berth/docs`)
    expect(await page.title()).toBe('Control API · berth')
    await page
      .getByText('What runs, and what is enforced on this machine')
      .first()
      .waitFor({ state: 'attached' })
    const answered = page.waitForResponse((response) => response.url().endsWith('/_berth/accounts'))
    await page.evaluate(
      "fetch('/_berth/accounts', { method: 'POST', headers: { authorization: 'Bearer ' + TOKEN } })".replace(
        'TOKEN',
        JSON.stringify(berth.info.admin_token),
      ),
    )
    const response = await answered
    expect(await response.request().headerValue('origin')).toBe(berth.info.base_url)
    expect(response.status()).toBe(201)
    expect(new Set(requests.map((url) => new URL(url).origin))).toEqual(new Set([berth.info.base_url]))
    expect(problems).toEqual([])
  })
})
