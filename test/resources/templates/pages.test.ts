import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { browserPath, launchBrowser } from '../../support/browser.ts'
import { type WatchedPage, watchedPage } from '../../support/watched-page.ts'
import { runsHere, startTemplate, type TemplateApp } from './app.ts'
import { startProxy } from './proxy.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

/** What a page is used for, and what tells that it worked. */
const USES: Record<string, (page: Page) => Promise<unknown>> = {
  async 'static-site'(page) {
    await page.getByText('Do you draw maps on request?').click()
    await page.getByText('Gladly, for any place').waitFor()
    const before = await page.evaluate('getComputedStyle(document.body).backgroundColor')
    await page.getByRole('button', { name: /^Switch to/ }).click()
    await page.reload()
    // The choice is kept.
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).not.toBe(before)
  },
  async 'sqlite-notes'(page) {
    await page.getByLabel('Title').fill('<b>Soup</b>')
    await page.getByLabel('Text').fill('Leek and potato')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    await page.getByRole('button', { name: /<b>Soup<\/b>/ }).waitFor()
    await page.getByLabel('Search notes').fill('nothing like it')
    await page.getByText('No note contains that.').waitFor()
    await page.getByLabel('Search notes').fill('potato')
    await page.getByRole('button', { name: /<b>Soup<\/b>/ }).click()
    page.once('dialog', (dialog) => dialog.accept())
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No note contains that.').waitFor()
  },
  async fullstack(page) {
    await page.getByRole('button', { name: 'Tacos' }).click()
    await page.getByText('1 vote. Change yours at any time.').waitFor()
    await page.getByRole('button', { name: 'Ramen' }).click()
    await page.getByRole('button', { name: 'Ramen 100 %', pressed: true }).waitFor()
  },
  async 'websocket-chat'(page) {
    await page.getByLabel('Your name').fill('Ada')
    await page.getByRole('button', { name: 'Join' }).click()
    await page.getByText('Ada (you)').waitFor()
  },
  async 'python-api'(page) {
    await page.getByLabel('Text', { exact: true }).fill('One harbour, two boats. No more.')
    await page.locator('#words', { hasText: '6' }).waitFor()
    await page.locator('#frequent li', { hasText: 'harbour' }).waitFor()
  },
}

const SCREENS = [
  ['a wide, light screen', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
  ['a narrow, dark screen', { viewport: { width: 360, height: 740 }, colorScheme: 'dark' }],
] as const

let browser: Browser
if (browserPath !== null) {
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())
}

describe.skipIf(browserPath === null)('the page of a template (needs Chromium)', () => {
  // In one profile for all of them, since a profile of its own costs more than the rest of a test. Apps have ports of their
  // own, so that nothing but cookies is common to them.
  for (const [name, options] of SCREENS) {
    describe(`on ${name}`, () => {
      let watched: WatchedPage
      beforeAll(async () => {
        watched = await watchedPage(browser, options)
      })
      afterAll(() => watched?.[Symbol.asyncDispose]())

      test.each(Object.keys(USES).filter(runsHere))(
        '%s works, fits, and asks nobody but its app',
        async (id) => {
          await using app = await startTemplate(id)
          const { page, requests, problems } = watched
          await page.goto('about:blank')
          await page.context().clearCookies()
          requests.length = 0
          problems.length = 0
          await page.goto(app.url)
          await USES[id]?.(page)
          expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(options.viewport.width)
          const [red = 0] = String(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
            .match(/\d+/g)
            ?.map(Number) ?? [Number.NaN]
          // The static site was just switched to the other scheme.
          const dark = (options.colorScheme === 'dark') !== (id === 'static-site')
          expect(red < 128).toBe(dark)
          expect(new Set(requests.map((url) => new URL(url).origin))).toEqual(new Set([app.url]))
          expect(problems).toEqual([])
          // Before the app ends: what waits for it would be a problem of the next one.
          await page.goto('about:blank')
        },
      )
    })
  }

  test('static-site has a page for addresses of any depth that there are not', async () => {
    await using app = await startTemplate('static-site')
    await using watched = await watchedPage(browser)
    const { page, problems } = watched
    const answer = await page.goto(`${app.url}/no/such/page`)
    expect(answer?.status()).toBe(404)
    await page.getByRole('link', { name: 'Back to the start' }).click()
    await page.getByText('Take the long way round.').waitFor()
    expect(problems.filter((problem) => !problem.includes('404'))).toEqual([])
  })

  test('sqlite-notes keeps notes when the app is started again', async () => {
    await using app = await startTemplate('sqlite-notes')
    await using watched = await watchedPage(browser)
    const { page } = watched
    await page.goto(app.url)
    await page.getByLabel('Title').fill('Kept')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    await app.stop()
    await app.start()
    await page.reload()
    await page.getByRole('button', { name: 'Kept' }).waitFor()
  })

  test('sqlite-notes keeps what is in the editor while the app is away', async () => {
    await using app = await startTemplate('sqlite-notes')
    await using watched = await watchedPage(browser)
    const { page } = watched
    await page.goto(app.url)
    await page.getByLabel('Title').fill('Unsaved')
    await app.stop()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The app does not answer. Your text is still here.').waitFor()
    await app.start()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Unsaved' }).waitFor()
  })
})

describe.skipIf(browserPath === null)('websocket-chat between two pages (needs Chromium)', () => {
  let app: TemplateApp
  beforeAll(async () => {
    app = await startTemplate('websocket-chat')
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  const enter = async (page: Page, name: string, room: string) => {
    await page.goto(`${app.url}/#${room}`)
    await page.getByLabel('Your name').fill(name)
    await page.getByRole('button', { name: 'Join' }).click()
    await page.getByText(`${name} (you)`).waitFor()
  }
  const say = async (page: Page, text: string) => {
    await page.getByLabel('Message', { exact: true }).fill(text)
    await page.getByLabel('Message', { exact: true }).press('Enter')
  }

  test('shows words and names as text, and who is there', async () => {
    await using ada = await watchedPage(browser)
    await using bob = await watchedPage(browser)
    const attack = '<img src=x onerror="document.title=1">'
    await enter(ada.page, 'Ada', 'one')
    await enter(bob.page, '<b>Bob</b>', 'one')
    await ada.page.locator('#people', { hasText: '<b>Bob</b>' }).waitFor()
    await say(bob.page, attack)
    await ada.page.getByText(attack).waitFor()
    expect(await ada.page.locator('#chat img, #chat b').count()).toBe(0)
    await bob.page.getByRole('button', { name: 'Leave' }).click()
    await ada.page.locator('#count', { hasText: /^1$/ }).waitFor()
    expect([...ada.problems, ...bob.problems]).toEqual([])
  })

  test('comes back by itself when the app was started again, and shows nothing twice', async () => {
    await using ada = await watchedPage(browser)
    await using bob = await watchedPage(browser)
    await enter(ada.page, 'Ada', 'two')
    await enter(bob.page, 'Bob', 'two')
    await say(ada.page, 'before')
    await bob.page.getByText('before').waitFor()
    await app.stop()
    await ada.page.getByText('Connection lost. Trying again…').waitFor()
    // What cannot be sent stays in the field.
    await say(ada.page, 'after')
    await app.start()
    for (const { page } of [ada, bob]) await page.getByText('Connected').waitFor()
    await bob.page.locator('#count', { hasText: /^2$/ }).waitFor()
    await ada.page.getByRole('button', { name: 'Send' }).click()
    await bob.page.getByText('after').waitFor()
    expect(await bob.page.locator('.words').allTextContents()).toEqual(['before', 'after'])
  })
})

describe.skipIf(browserPath === null)('fullstack while it is edited, behind a proxy (needs Chromium)', () => {
  test('the page takes over styles and code, the API changes, votes stay, a restart reloads it', async () => {
    await using app = await startTemplate('fullstack')
    await using proxy = startProxy(app.port)
    await using watched = await watchedPage(browser)
    const { page } = watched
    const edit = async (name: string, from: string, to: string) => {
      const path = join(app.folder, name)
      const text = await Bun.file(path).text()
      expect(text).toContain(from)
      writeFileSync(path, text.replaceAll(from, to))
    }
    const connected = page.waitForEvent('websocket')
    await page.goto(proxy.url)
    await connected
    await page.getByRole('button', { name: 'Tacos' }).click()
    await page.getByText('1 vote.').waitFor()
    await page.evaluate('window.mark = true')

    await edit('src/page/style.css', 'border-radius: 24px', 'border-radius: 3px')
    await page.waitForFunction('getComputedStyle(document.querySelector("main")).borderRadius === "3px"')
    await edit('src/page/main.ts', '1 vote', 'a single vote')
    await page.getByText('a single vote.').waitFor()
    // Neither took a new page.
    expect(await page.evaluate('window.mark')).toBe(true)

    await edit(
      'src/app.ts',
      'poll.view(voterOf(request))',
      "{ ...poll.view(voterOf(request)), question: 'Why?' }",
    )
    await page.getByRole('heading', { name: 'Why?' }).waitFor()
    await page.getByText('a single vote.').waitFor()

    await app.stop()
    await app.start()
    await page.waitForFunction('window.mark === undefined')
    await page.getByText('0 votes. What do you say?').waitFor()
  })
})
