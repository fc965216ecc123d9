import type { Browser, Page } from 'playwright-core'
import { watchedPage } from '../../test/support/watched-page.ts'
import type { Instance } from './instance.ts'

/**
 * What measures inside of the page, since a look from outside comes late. `until` resolves to the time, in milliseconds
 * since the epoch, of the first frame after a test of the document holds. `row` is when the page showed its first
 * server, in milliseconds since the navigation began. `work` does the same in each of 60 frames, and resolves to the least
 * and the most milliseconds that it took: how much the machine's other load stretches a task.
 */
const PROBE = `
globalThis.probe = {
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
export interface Tasks {
  count: number
  /** Milliseconds of the longest of all tasks. */
  longest: number
}

/** The long tasks of a time. */
export interface LongTasks {
  /** By the processor's time, which is the page's own work. */
  processor: Tasks
  /** By the clock, with what the machine did meanwhile. */
  clock: Tasks
  /** The least and the most milliseconds that equal work took in the page right before. */
  equalWork: [least: number, most: number]
}

/** Milliseconds from which a task is long: it may keep three frames from being drawn. */
const LONG_MS = 50

/** Milliseconds within which the begin of a trace is over, which takes the page's time too. */
const STARTING_MS = 200

/** An event of a trace; times are in microseconds, `tdur` that of the processor. */
interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  readonly ts: number
  readonly dur?: number
  readonly tdur?: number
  readonly args: { readonly name?: string }
}

/** Returns the tasks of the pages' main threads in a trace of Chromium. */
function tasksIn(trace: Buffer): { processor: Tasks; clock: Tasks } {
  const { traceEvents: events } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] }
  const threadOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`
  const main = new Set(
    events.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(threadOf),
  )
  const all = events.filter((one) => one.name === 'ThreadControllerImpl::RunTask' && main.has(threadOf(one)))
  const begun = all.reduce((first, { ts }) => Math.min(first, ts), Number.POSITIVE_INFINITY)
  const tasks = all.filter(({ ts }) => ts - begun > STARTING_MS * 1_000)
  if (tasks.length === 0) throw new Error('the browser has traced no tasks')
  const longest = (times: number[]): Tasks => ({
    count: times.filter((time) => time > LONG_MS).length,
    longest: times.reduce((most, time) => Math.max(most, time), 0),
  })
  return {
    processor: longest(tasks.map(({ tdur }) => (tdur ?? 0) / 1_000)),
    clock: longest(tasks.map(({ dur }) => (dur ?? 0) / 1_000)),
  }
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
      let trace: Buffer
      const equalWork = await page.evaluate<[number, number]>('probe.work()')
      await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-thread_time'] })
      await Bun.sleep(STARTING_MS)
      try {
        await work()
      } finally {
        trace = await browser.stopTracing()
      }
      return { ...tasksIn(trace), equalWork }
    },
    [Symbol.asyncDispose]: dispose,
  }
}

/** Makes a link that signs a browser in as the instance's owner and leads to a path. */
export async function signInLink(berth: Instance, path: string): Promise<string> {
  const { url } = await berth.control('POST', '/sign-in-links', { return_to: path })
  return url
}
