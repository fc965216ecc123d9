import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { browserPath } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'
import { thorough } from '../support/thorough.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

const WIDTHS = [390, 1024, 1280]
const HEIGHTS = [503, 601, 657, 748, 800, 899]

/** The sizes of the window: each height in each width, or in one of them. Each one is drawn for 12 frames, without a graphics card. */
const SIZES = thorough
  ? WIDTHS.flatMap((width) => HEIGHTS.map((height) => [width, height] as const))
  : HEIGHTS.map((height, n) => [WIDTHS[n % WIDTHS.length] ?? 0, height] as const)

/** Whether the rows of the terminal at PLACE fill its room, so that no further one fits. */
const isFitted = (place: string): string => `(() => {
  const room = document.querySelector('${place} .terminal-screen')
  const screen = room?.querySelector('.xterm-screen')
  const rows = room?.querySelectorAll('.xterm-accessibility-tree > div').length
  if (!screen || !rows) return false
  const padding = parseFloat(getComputedStyle(room.querySelector('.xterm')).paddingTop)
  const spare = room.clientHeight - padding - screen.offsetHeight
  return spare >= 0 && (rows === 1 || spare < screen.offsetHeight / rows + 1)
})()`

/** Sets the window's size, and waits until 12 frames were drawn in which the terminal fills its room. */
async function resize(page: Page, place: string, width: number, height: number): Promise<void> {
  await page.setViewportSize({ width, height })
  const isDone = await page.evaluate(`new Promise((resolve) => {
    let [frames, fitted] = [0, 0]
    const next = () => {
      fitted = ${isFitted(place)} ? fitted + 1 : 0
      if (fitted > 12 || ++frames > 300) resolve(fitted > 12)
      else requestAnimationFrame(next)
    }
    next()
  })`)
  expect({ width, height, isDone }).toEqual({ width, height, isDone: true })
}

describe.skipIf(browserPath === null)('the size of a terminal on the dashboard (needs Chromium)', () => {
  const tests = dashboardTests({}, true)

  test.each([
    ['on the page of its server', '#main', false],
    ['below a banner', '#main', true],
    ['in the drawer', '.drawer', false],
    ['in the drawer, below a banner', '.drawer', true],
  ] as const)(
    '%s, it changes once with the size of the window, and no scrollbar comes',
    async (_, place, hasBanner) => {
      const serverId = await tests.berth.server({ task: 'sized' })
      await tests.berth.call('POST', `/servers/${serverId}/terminals`, {})
      await tests.berth.control('POST', '/clock', { freeze: hasBanner })
      const part = place === '#main' ? '' : '/files'
      await using watched = await tests.open('/dashboard/servers', { viewport: { width: 1280, height: 657 } })
      const { page, problems } = watched
      let sent = 0
      page.on('websocket', (socket) =>
        socket.on('framesent', ({ payload }) => {
          if (String(payload).startsWith('{"resize"')) sent++
        }),
      )
      await page.goto(`${tests.berth.info.base_url}/dashboard/servers/${serverId}${part}`)
      if (part !== '') {
        await page.getByRole('button', { name: /^Drawer/ }).click()
        await page.locator('.drawer').getByRole('button', { name: 'Shell' }).click()
      }
      await page.locator(`${place} .xterm-accessibility-tree`).getByText('$').first().waitFor()
      if (hasBanner) await page.locator('.banner').first().waitFor()
      await resize(page, place, 1280, 657)
      for (const [width, height] of SIZES) {
        const before = sent
        await resize(page, place, width, height)
        expect({ width, height, resizes: Math.max(1, sent - before) }).toEqual({
          width,
          height,
          resizes: 1,
        })
        expect(
          await page.evaluate(`[...document.querySelectorAll('#main, .page, .terminals, .terminal-screen')]
          .filter((one) => one.querySelector('.terminal-screen') || one.matches('.terminal-screen'))
          .filter((one) => one.scrollHeight > one.clientHeight || one.scrollWidth > one.clientWidth)
          .map((one) => one.className || one.id)`),
        ).toEqual([])
      }
      expect(sent).toBeGreaterThan(0)
      expect(problems).toEqual([])
      await tests.berth.control('POST', '/clock', { reset: true })
    },
    120_000,
  )
})
