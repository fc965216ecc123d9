import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserPath } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

const REQUESTS = 400

/** Lines of the log, some of which take more than one row. */
const LINES = 115_000

describe.skipIf(browserPath === null)('long lists on the dashboard (need Chromium)', () => {
  const tests = dashboardTests()

  test('scrolling through requests draws those in view, in order, and makes no new elements', async () => {
    for (let sent = 0; sent < REQUESTS; sent += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, n) => tests.berth.call('GET', `/templates?n=${sent + n}`)),
      )
    await using watched = await tests.open('/dashboard/requests?operation=templates.list')
    const { page, problems } = watched
    await page.locator('.requests li').first().waitFor()
    await page.getByRole('button', { name: 'Load older ones' }).click()
    await page.getByRole('button', { name: 'Load older ones' }).waitFor({ state: 'detached' })
    const seen = await page.evaluate<{
      added: number
      most: number
      wrong: number
      rows: number
    }>(`(async () => {
      const list = document.querySelector('section.virtual')
      const scrollTo = async (pixel) => {
        const scrolled = new Promise((resolve) => list.addEventListener('scroll', resolve, { once: true }))
        list.scrollTop = pixel
        await scrolled
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
      }
      // As many rows as are ever drawn at a time.
      await scrollTo(2 * list.clientHeight)
      let added = 0
      new MutationObserver((changes) => {
        for (const { target, addedNodes } of changes)
          if (target.localName !== 'ul') added += [...addedNodes].filter(({ nodeType }) => nodeType === 1).length
      }).observe(list, { childList: true, subtree: true })
      const known = new Set(document.querySelectorAll('.requests li'))
      let [most, wrong, rows] = [0, 0, new Set()]
      while (list.scrollTop < list.scrollHeight - list.clientHeight - 1) {
        await scrollTo(list.scrollTop + list.clientHeight / 2)
        const drawn = [...document.querySelectorAll('.requests li')]
        most = Math.max(most, drawn.length)
        for (const row of drawn) {
          if (!known.has(row)) added += 1
          known.add(row)
          rows.add(row.ariaPosInSet)
        }
        // The rows fill the view, and follow one another on the screen as in the document.
        const tops = drawn.map((row) => row.getBoundingClientRect())
        const view = list.getBoundingClientRect()
        if (tops[0].top > view.top || tops.at(-1).top < view.bottom - 37) wrong += 1
        if (tops.some(({ top }, n) => n > 0 && Math.abs(top - tops[n - 1].top - 36) > 1)) wrong += 1
      }
      return { added, most, wrong, rows: rows.size }
    })()`)
    expect(seen.wrong).toBe(0)
    expect(seen.most).toBeLessThan(80)
    // The last screen is not a whole one, so that a few more may be drawn on the way to it.
    expect(seen.added).toBeLessThan(30)
    expect(await page.locator('.requests li').last().textContent()).toContain('?n=0')
    expect(problems).toEqual([])
  })

  test('a log keeps its last 100,000 lines, follows its end, and stays where a person reads', async () => {
    const serverId = await tests.berth.server()
    const { body: project } = await tests.berth.call('POST', `/servers/${serverId}/projects`, {
      name: 'Talkative',
      source: { type: 'template', template: 'static-site' },
    })
    await using watched = await tests.open('/dashboard/projects')
    const { page } = watched
    // Megabytes come through the tool that drives the browser.
    page.setDefaultTimeout(120_000)
    // In place of an app that prints for minutes, since berth takes 5,000 lines a second.
    let printed = 0
    let more = Promise.withResolvers<void>()
    await page.route(`**/projects/${project.id}/logs*`, async (route) => {
      if (printed > 0) await more.promise
      more = Promise.withResolvers<void>()
      const first = printed + 1
      printed += first === 1 ? LINES : 100
      const lines = Array.from({ length: printed - first + 1 }, (_, n) => lineOf(first + n))
      await route.fulfill({ contentType: 'text/event-stream', body: lines.join('') }).catch(() => {})
    })
    // The stream is opened again when it has ended.
    const printMore = (): void => more.resolve()
    await page.goto(`${tests.berth.info.base_url}/dashboard/projects/${project.id}`)
    await page.getByText(`line ${LINES}`, { exact: true }).waitFor()
    const total = async (): Promise<number> =>
      Number.parseInt((await page.locator('.log .toolbar .number').textContent()) ?? '', 10)
    expect(await total()).toBeGreaterThanOrEqual(100_000)
    expect(await total()).toBeLessThanOrEqual(110_000)
    expect(await page.locator('.log li').count()).toBeLessThan(120)
    printMore()
    await page.getByText(`line ${LINES + 100}`, { exact: true }).waitFor()

    await page.locator('.log .virtual').evaluate((list) => {
      list.scrollTop -= 30_000
    })
    await page.locator('button[aria-pressed=false]', { hasText: 'Follow' }).waitFor()
    const read = await firstInView(page)
    const before = await total()
    printMore()
    await page
      .locator('.log .number')
      .getByText(`${before + 100} lines`)
      .waitFor()
    // The rows that came meanwhile, and those whose height became known, move nothing in view.
    expect(await firstInView(page)).toBe(read)

    await page.keyboard.press('f')
    await page.getByText(`line ${printed}`, { exact: true }).waitFor()
    printMore()
  }, 180_000)
})

/** A line as the stream sends it. Every tenth is too long for a row. */
const lineOf = (seq: number): string => {
  const text = seq % 10 === 1 ? `${'long '.repeat(80)}${seq}` : `line ${seq}`
  const data = { seq, at: '2026-01-01T00:00:00.000Z', source: 'app', stream: 'stdout', text }
  return `event: line\ndata: ${JSON.stringify(data)}\n\n`
}

/** The text of the first line that is in view. */
const firstInView = (page: Page): Promise<string> =>
  page.evaluate<string>(`(() => {
    const { top } = document.querySelector('.log .virtual').getBoundingClientRect()
    const rows = [...document.querySelectorAll('.log li')]
    return rows.find((row) => row.getBoundingClientRect().bottom > top + 1).textContent
  })()`)
