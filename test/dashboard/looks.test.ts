import { describe, expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'

describe.skipIf(browserPath === null)('the looks of the dashboard (needs Chromium)', () => {
  const tests = dashboardTests()

  test('at 200 % what scrolls by itself keeps a height that can be used', async () => {
    const server = await tests.berth.server()
    await tests.berth.call('PUT', `/servers/${server}/files`, { path: 'notes.md', content: '# Notes' })
    const viewport = { width: 640, height: 400 }
    await using watched = await tests.open(`/dashboard/servers/${server}/files`, { viewport })
    const { page } = watched
    await page.getByRole('button', { name: 'notes.md' }).waitFor()
    const files = await page.locator('.files .virtual').boundingBox()
    expect(files?.height).toBeGreaterThan(100)
  })

  test('a name of 200 characters takes three lines of a narrow window, and its actions stay in view', async () => {
    const { body } = await tests.berth.call('POST', '/servers', {
      task: 'a-name-without-a-break-'.repeat(9).slice(0, 200),
    })
    const viewport = { width: 390, height: 844 }
    await using watched = await tests.open(`/dashboard/servers/${body.id}`, { viewport })
    const { page } = watched
    const title = page.getByRole('heading', { level: 1 })
    await title.waitFor()
    expect(await title.evaluate((element) => element.clientHeight)).toBeLessThan(110)
    expect(await title.getAttribute('title')).toBe(await title.textContent())
    const menu = await page.locator('.title-row').getByRole('button').last().boundingBox()
    expect((menu?.x ?? 0) + (menu?.width ?? 0)).toBeLessThanOrEqual(viewport.width)
  })

  test('nothing moves for a person who asked for reduced motion', async () => {
    await using watched = await tests.open('/dashboard/servers', { reducedMotion: 'reduce' })
    const { page } = watched
    const durations = await page.evaluate(`
      const state = document.body.appendChild(document.createElement('span'))
      state.className = 'state active'
      const button = document.querySelector('.button')
      ;[getComputedStyle(state, '::before').animationDuration, getComputedStyle(button).transitionDuration]`)
    expect(durations).toEqual(['0s', '0s'])
  })
})
