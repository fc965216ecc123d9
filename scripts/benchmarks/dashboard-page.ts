import type { Browser, Page } from 'playwright-core'
import { watchedPage } from '../../test/support/browser.ts'
import type { Instance } from './instance.ts'

/**
 * What measures inside of the page, since a look from outside comes late. `until` resolves to the time, in milliseconds
 * since the epoch, of the first frame after a test of the document holds. `row` is when the page showed its first
 * server, in milliseconds since the navigation began. `work` does the same in each of 60 frames, and resolves to the least
 * and the most milliseconds that it took: how much the machine's other load stretches a task.
 */
const PROBE = `
globalThis.probe = {
  tasks: [],
  observer: new PerformanceObserver((list) => probe.tasks.push(...list.getEntries().map(({ duration }) => duration))),
  until(test) {
    return new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error('not shown within 30 s: ' + test)), 30_000)
      const look = () => {
        if (!test()) return false
        changes.disconnect()
        requestAnimationFrame(() => setTimeout(() => resolve(performance.timeOrigin + performance.now())))
        return true
      }
      const changes = new MutationObserver(look)
      if (!look()) changes.observe(document, { childList: true, subtree: true, characterData: true, attributes: true })
    })
  },
  has: (selector, text) => [...document.querySelectorAll(selector)].some((one) => one.textContent.includes(text)),
  async work() {
    const taken = []
    for (let frame = 0; frame < 60; frame += 1) {
      await new Promise(requestAnimationFrame)
      const begun = performance.now()
      for (let n = 0, sum = 0; n < 5_000_000; n += 1) sum = Math.imul(sum ^ n, 31)
      taken.push(performance.now() - begun)
    }
    return [Math.min(...taken), Math.max(...taken)]
  },
  async scroll() {
    const list = document.querySelector('section.virtual')
    const end = () => list.scrollHeight - list.clientHeight - 1
    while (list.scrollTop < end()) {
      list.scrollTop += list.clientHeight
      await new Promise(requestAnimationFrame)
    }
  },
}
probe.observer.observe({ type: 'longtask' })
probe.row = probe.until(() => probe.has('.servers .row-link', '')).then((at) => at - performance.timeOrigin)
probe.row.catch(() => {})
`

/** Sizes of what a page has loaded, compressed, in bytes. */
export interface LoadedBytes {
  scripts: number
  styles: number
  files: string[]
}

/** Tasks of the page's main thread that kept it for more than 50 ms. */
export interface LongTasks {
  count: number
  /** Milliseconds of the longest; 0 without one. */
  longest: number
  /** The least and the most milliseconds that equal work took in the page right before. */
  equalWork: [least: number, most: number]
}

/** A page of the dashboard that measures itself. */
export interface MeasuredPage extends AsyncDisposable {
  readonly page: Page
  /** Waits until an element with a text is shown; resolves to the time of it, in milliseconds since the epoch. */
  shown(selector: string, text?: string): Promise<number>
  /** Loads a path; resolves to the milliseconds from the navigation to the first server in the list. */
  serversShown(path: string): Promise<number>
  /** What was loaded since the navigation, without files of before. */
  loaded(before?: readonly string[]): Promise<LoadedBytes>
  /** Runs `work`, and tells what kept the page from drawing meanwhile. */
  longTasksOf(work: () => Promise<unknown>): Promise<LongTasks>
}

/** Opens a page in a profile of its own, which loads nothing yet. */
export async function measuredPage(browser: Browser): Promise<MeasuredPage> {
  const { page, [Symbol.asyncDispose]: dispose } = await watchedPage(browser, {
    viewport: { width: 1280, height: 800 },
  })
  await page.addInitScript({ content: PROBE })
  const shown = (selector: string, text = ''): Promise<number> =>
    page.evaluate<number>(
      `probe.until(() => probe.has(${JSON.stringify(selector)}, ${JSON.stringify(text)}))`,
    )
  return {
    page,
    shown,
    async serversShown(path) {
      await page.goto(path, { waitUntil: 'commit' })
      return page.evaluate<number>('probe.row')
    },
    async loaded(before = []) {
      const entries = await page.evaluate<[string, number][]>(
        `performance.getEntriesByType('resource').map(({ name, encodedBodySize }) => [name, encodedBodySize])`,
      )
      const fresh = entries.filter(([name]) => !before.includes(name))
      const sum = (extension: string): number =>
        fresh.reduce((bytes, [name, size]) => bytes + (name.endsWith(extension) ? size : 0), 0)
      return { scripts: sum('.js'), styles: sum('.css'), files: entries.map(([name]) => name) }
    },
    async longTasksOf(work) {
      const equalWork = await page.evaluate<[number, number]>('probe.work()')
      await Bun.sleep(200)
      await page.evaluate('void (probe.tasks.length = 0)')
      await work()
      // The observer is told a moment later.
      await Bun.sleep(200)
      const tasks = await page.evaluate<number[]>('probe.tasks')
      return { count: tasks.length, longest: Math.max(0, ...tasks), equalWork }
    },
    [Symbol.asyncDispose]: dispose,
  }
}

/** Makes a link that signs a browser in as the instance's owner and leads to a path. */
export async function signInLink(berth: Instance, path: string): Promise<string> {
  const { url } = await berth.control('POST', '/sign-in-links', { return_to: path })
  return url
}
