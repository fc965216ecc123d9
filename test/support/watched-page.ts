import type { Browser, BrowserContextOptions, CDPSession, Page } from 'playwright-core'

/** A page under watch. Disposing of it takes back what a test has done to it, for the next one. */
export interface WatchedPage extends AsyncDisposable {
  readonly page: Page
  /** URLs of all requests so far, without those that carry their data themselves. */
  readonly requests: string[]
  /** Errors of the console, uncaught ones, refusals by the page's policy and requests that failed. */
  readonly problems: string[]
  /** Says that the test does something to the page that cannot be taken back, so that no other may have it. */
  spend(): void
}

/** A page with a profile of its own, which one test has at a time. */
interface PooledPage {
  readonly page: Page
  readonly tools: CDPSession
}

/** What every page has that asks for nothing else. What moves without end would be drawn anew 60 times a second. */
const USUAL = {
  viewport: { width: 1280, height: 720 },
  colorScheme: 'light',
  reducedMotion: 'reduce',
} as const

/** The pages of each browser that no test has, by the options that cannot be changed once a profile is there. */
const free = new WeakMap<Browser, Map<string, PooledPage[]>>()

/**
 * Opens a page in a profile that nobody else has and that is as new, and notes all that it does.
 *
 * The page is one that an earlier test has had, if there is one: its process is there and has compiled the scripts, which
 * takes half of the processor time of a first load. It has no cookie and nothing stored; only the browser's cache is kept,
 * as for any who come again.
 */
export async function watchedPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const { viewport = USUAL.viewport, colorScheme = USUAL.colorScheme, reducedMotion, ...fixed } = options
  const all = free.get(browser) ?? new Map<string, PooledPage[]>()
  free.set(browser, all)
  const key = JSON.stringify(fixed)
  const pool = all.get(key) ?? []
  all.set(key, pool)
  const pooled = pool.pop() ?? (await newPage(browser, fixed))
  const { page } = pooled
  if (viewport !== null) await page.setViewportSize(viewport)
  await page.emulateMedia({ colorScheme, reducedMotion: reducedMotion ?? USUAL.reducedMotion })

  const requests: string[] = []
  const problems: string[] = []
  const origins = new Set<string>()
  let isSpent = false
  page.on('request', (request) => {
    if (/^(data|blob):/.test(request.url())) return
    requests.push(request.url())
    if (request.isNavigationRequest()) origins.add(new URL(request.url()).origin)
  })
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText
    // A page that is left ends what it still loads.
    if (why !== 'net::ERR_ABORTED') problems.push(`${request.url()}: ${why}`)
  })
  page.on('console', (message) => {
    // Drawing without a graphics card and on a busy machine is slow, which the driver and the terminal tell.
    const isSlow = /^\[\.WebGL-|^task queue exceeded allotted deadline/.test(message.text())
    if (['error', 'warning'].includes(message.type()) && !isSlow) problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(error.message))
  return {
    page,
    requests,
    problems,
    spend: () => {
      isSpent = true
    },
    async [Symbol.asyncDispose]() {
      const isRenewed = !isSpent && (await renewed(pooled, origins).catch(() => false))
      if (isRenewed) pool.push(pooled)
      else await page.context().close()
    },
  }
}

async function newPage(browser: Browser, options: BrowserContextOptions): Promise<PooledPage> {
  const context = await browser.newContext({ ...options, ...USUAL })
  const page = await context.newPage()
  return { page, tools: await context.newCDPSession(page) }
}

/**
 * Makes a page as new.
 *
 * @param origins all that it has been to
 * @returns whether it is: not with further windows, nor after several origins
 */
async function renewed({ page, tools }: PooledPage, origins: ReadonlySet<string>): Promise<boolean> {
  const context = page.context()
  const [origin] = origins
  if (page.isClosed() || context.pages().length > 1 || origins.size > 1) return false
  page.removeAllListeners()
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.goto('about:blank')
  if (origin !== undefined) await tools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
  await context.clearCookies()
  // Else what comes to be below the pointer is hovered.
  await page.mouse.move(-1, -1)
  return true
}
