import { browserPath, launchBrowser } from '../../test/support/browser.ts'
import { type LongTasks, type MeasuredPage, measuredPage, signInLink, type Tasks } from './dashboard-page.ts'
import { cpuOf } from './idle.ts'
import { executable, type Instance, startInstance } from './instance.ts'
import { median, ms, print, type Row, times } from './measure.ts'
import { measuredStart } from './startup.ts'

const VIEWS = 5
const CHANGES = 9
const SERVERS = 1_000
const REQUESTS = 10_000
const LOG_BYTES = 100_000_000
/** Milliseconds after which the rest of a log is not waited for. */
const LOG_MS = 10_000
/** Milliseconds after which no more servers are made. */
const FILL_MS = 35_000
const IDLE_MS = 5_000
const STARTS = 31

/** An earlier executable of berth to compare the start with, where one is named. */
const earlier = process.env.BERTH_BASELINE || null

const PROMPT = '.xterm-accessibility-tree'

/** How big the dashboard is, how soon it shows what, and whether it stutters with much in it. Needs Chromium. */
export async function benchDashboard(): Promise<void> {
  const rows: Row[] = []
  if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')
  else rows.push(...(await inBrowser()))
  if (earlier !== null) rows.push(await startAgainst(earlier))
  print(
    `The dashboard${earlier === null ? ' (start: BERTH_BASELINE names an earlier executable)' : ''}`,
    rows,
  )
}

async function inBrowser(): Promise<Row[]> {
  await using berth = await startInstance(undefined, [
    '--project-ports',
    '6200-6299',
    '--journal-size',
    String(REQUESTS),
  ])
  await using browser = await launchBrowser()
  const rows: Row[] = []
  {
    await using first = await measuredPage(browser)
    rows.push(...(await fromLinkToPrompt(berth, first)))
    await using second = await measuredPage(browser)
    rows.push(await firstView(berth, second))
    rows.push(await referenceDrawn(berth, second))
    rows.push(await changeSeen(berth, [first, second]))
    rows.push(...(await idle(berth, second)))
    rows.push(await terminalLog(berth, first))
    rows.push(await projectLog(berth, second))
  }
  await fillUp(berth)
  await using page = await measuredPage(browser)
  rows.push(await firstView(berth, page))
  rows.push(...(await manyRequests(berth, page)))
  return rows
}

/** A person's way from the ready line to a prompt, on an empty instance, and the bytes that it takes. */
async function fromLinkToPrompt(berth: Instance, measured: MeasuredPage): Promise<Row[]> {
  const { page } = measured
  const begun = Date.now()
  // The first click is on the link that berth prints.
  await page.goto(berth.signInUrl)
  const create = page.getByRole('button', { name: 'Create a server' })
  await create.waitFor()
  const offered = Date.now()
  const first = await measured.loaded()
  await create.click()
  const clicked = Date.now()
  const prompt = await measured.shown(PROMPT, '$')
  const terminal = await measured.loaded(first.files)
  const { servers } = await berth.call('GET', '/servers')
  await berth.call('PUT', `/servers/${servers[0].id}/files`, { path: 'notes.txt', content: 'hello' })
  await page.getByRole('link', { name: 'Files' }).click()
  await page.getByRole('button', { name: 'notes.txt' }).click()
  await page.getByRole('textbox', { name: 'Content of notes.txt' }).waitFor()
  const editor = await measured.loaded(terminal.files)
  await page.goBack()
  return [
    {
      what: 'scripts and style of the first view, gzip',
      measured: `${kilobytes(first.scripts)} and ${kilobytes(first.styles)}`,
      goal: '≤ 150 KB',
      met: first.scripts <= 150_000,
    },
    {
      what: 'scripts that the first terminal and editor add',
      measured: `${kilobytes(terminal.scripts)} and ${kilobytes(editor.scripts)}`,
    },
    {
      what: 'two clicks: link of the ready line → offer of a server, cold browser; the offer → prompt',
      measured: `${ms(offered - begun)} and ${ms(prompt - clicked)}`,
    },
  ]
}

/** Navigation → list of servers, with the files of the dashboard in the browser's cache. */
async function firstView(berth: Instance, measured: MeasuredPage): Promise<Row> {
  await measured.page.goto(await signInLink(berth, '/dashboard/servers'))
  await measured.shown('.servers .row-link')
  const taken: number[] = []
  for (let n = 0; n < VIEWS; n += 1) taken.push(await measured.serversShown(`${berth.url}/dashboard/servers`))
  const { servers } = await berth.call('GET', '/servers')
  return {
    what: `navigation → list of servers, ${servers.length.toLocaleString('en')} in all, median of ${VIEWS}`,
    measured: ms(median(taken)),
    goal: '≤ 300 ms',
    met: median(taken) <= 300,
  }
}

/** Resolves to the milliseconds from the navigation to the first frame after everything was loaded. */
const LOADED = `new Promise((resolve) => {
  const loaded = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
  if (document.readyState === 'complete') loaded()
  else addEventListener('load', loaded)
})`

/** Navigation → the reference drawn with all its operations: the first time, then with its files in the browser's cache. */
async function referenceDrawn(berth: Instance, { page }: MeasuredPage): Promise<Row> {
  const taken: number[] = []
  for (let n = 0; n < VIEWS; n += 1) {
    await page.goto(`${berth.url}/docs`, { waitUntil: 'commit' })
    taken.push(await page.evaluate<number>(LOADED))
  }
  const bytes = await page.evaluate<number>(`performance.getEntriesByType('navigation')[0].encodedBodySize`)
  return {
    what: `navigation → API reference drawn, median of ${VIEWS} (the first ${ms(taken[0] ?? 0)})`,
    measured: ms(median(taken)),
    baseline: `${kilobytes(bytes)} of HTML, gzip`,
    goal: '≤ 700 ms',
    met: median(taken) <= 700,
  }
}

/** A server renamed by another client, until two pages show it. */
async function changeSeen(berth: Instance, pages: readonly MeasuredPage[]): Promise<Row> {
  for (const { page } of pages) await page.goto(`${berth.url}/dashboard/servers`)
  for (const { page } of pages) await page.locator('.connection.live').first().waitFor({ state: 'attached' })
  const { servers } = await berth.call('GET', '/servers')
  const taken: number[] = []
  for (let n = 0; n < CHANGES; n += 1) {
    const name = `renamed ${n} times`
    const seen = pages.map((one) => one.shown('.servers .row-link', name))
    const begun = Date.now()
    await berth.call('PATCH', `/servers/${servers[0].id}`, { task: name })
    taken.push(Math.max(...(await Promise.all(seen))) - begun)
  }
  return {
    what: `change by another client → shown by two pages, median of ${CHANGES}`,
    measured: ms(median(taken)),
    goal: '≤ 200 ms',
    met: median(taken) <= 200,
  }
}

/** What berth and the page do while nothing happens. */
async function idle(berth: Instance, { page }: MeasuredPage): Promise<Row[]> {
  let sent = 0
  const count = () => {
    sent += 1
  }
  page.on('request', count)
  // A new load, so that its sockets are heard as well.
  page.on('websocket', (socket) => socket.on('framesent', count))
  await page.reload()
  await page.locator('.connection.live').first().waitFor({ state: 'attached' })
  await Bun.sleep(2_000)
  sent = 0
  const before = cpuOf(berth.pid)
  await Bun.sleep(IDLE_MS)
  const used = (cpuOf(berth.pid) - before) / 1_000
  page.off('request', count)
  return [
    {
      what: `idle for ${IDLE_MS / 1_000} s with two pages open: requests and messages that a page sends`,
      measured: String(sent),
      goal: '0',
      met: sent === 0,
    },
    { what: 'processor time of berth meanwhile', measured: `${used.toFixed(3)} s` },
  ]
}

/** A terminal that prints much while it is looked at. */
async function terminalLog(berth: Instance, measured: MeasuredPage): Promise<Row> {
  const { page } = measured
  const { servers } = await berth.call('GET', '/servers')
  const path = `/servers/${servers[0].id}/terminals`
  const { terminal } = await berth.call('POST', path, { name: 'printer' })
  await page.goto(`${berth.url}/dashboard/servers/${servers[0].id}?terminal=${terminal.id}`)
  await measured.shown(PROMPT, '$')
  let end = ''
  const tasks = await measured.longTasksOf(async () => {
    // The command itself does not show the end.
    const input = `yes '${LINE}' | head -c ${LOG_BYTES}; echo end-$((6*7))`
    await berth.call('POST', `${path}/${terminal.id}/input`, { text: input, keys: ['enter'] })
    end = await timeOf(measured.shown(PROMPT, 'end-42'))
  })
  await berth.call('DELETE', `${path}/${terminal.id}`)
  return stutter(`${LOG_BYTES / 1e6} MB printed on a terminal, ${end}`, tasks)
}

/** A line of a log. */
const LINE =
  'request 12345 took 12 ms and was responded to with status 200 by worker 7 of 8, no retry, no cache'

/** A project whose app prints much while its log is followed. */
async function projectLog(berth: Instance, measured: MeasuredPage): Promise<Row> {
  const { id: server } = await berth.call('POST', '/servers', { tier: 'large' })
  const { id, slug, url } = await berth.call('POST', `/servers/${server}/projects`, {
    name: 'printer',
    visibility: 'public',
  })
  await berth.call('PUT', `/servers/${server}/files`, { path: `projects/${slug}/index.ts`, content: PRINTER })
  await berth.call('POST', `/projects/${id}/init`)
  for (let phase = ''; phase !== 'ready'; await Bun.sleep(10)) {
    phase = (await berth.call('GET', `/projects/${id}`)).init_phase
    if (phase === 'failed') throw new Error('the app that prints did not come up')
  }
  await measured.page.goto(`${berth.url}/dashboard/projects/${id}`)
  await measured.shown('.log-text')
  let end = ''
  const tasks = await measured.longTasksOf(async () => {
    const printed = fetch(`${url}print`).then((response) => response.text())
    end = await timeOf(Promise.all([printed, measured.shown('.log-text', 'end-42')]))
  })
  await berth.call('DELETE', `/servers/${server}`)
  return stutter(`${LOG_BYTES / 1e6} MB printed by a project, its log followed, ${end}`, tasks)
}

/** An app that prints as much as is measured when it is called. */
const PRINTER = `
const block = '${LINE}\\n'.repeat(1_000)
Bun.serve({
  port: process.env.PORT,
  hostname: process.env.HOST,
  idleTimeout: 120,
  async fetch(request) {
    // Whether the app is healthy is asked at another path.
    if (!request.url.endsWith('/print')) return new Response('ready')
    const output = Bun.stdout.writer()
    for (let bytes = 0; bytes < ${LOG_BYTES}; bytes += block.length) {
      output.write(block)
      await output.flush()
    }
    output.write('end-42\\n')
    await output.flush()
    return new Response('printed')
  },
})
`

/** The list of requests, full. */
async function manyRequests(berth: Instance, measured: MeasuredPage): Promise<Row[]> {
  const { page } = measured
  await page.goto('about:blank')
  const { servers } = await berth.call('GET', '/servers')
  const ids: string[] = servers.map(({ id }: { id: string }) => id)
  for (let sent = 0; sent < REQUESTS; sent += 20) {
    const batch = Array.from({ length: 20 }, (_, n) =>
      berth.call('GET', `/servers/${ids[(sent + n) % ids.length]}`),
    )
    await Promise.all(batch)
  }
  await page.goto(`${berth.url}/dashboard/requests`, { waitUntil: 'commit' })
  const first = (await measured.shown('.requests .row-link')) - (await startOf(measured))
  let all = 0
  const loading = await measured.longTasksOf(async () => {
    const begun = Date.now()
    await page.getByRole('button', { name: 'Load older ones' }).click()
    all = (await page.evaluate<number>(`probe.until(${HAS_ALL})`)) - begun
  })
  const scrolling = await measured.longTasksOf(() => page.evaluate('probe.scroll()'))
  return [
    {
      what: 'navigation → requests shown, the newest 1,000; all 10,000 more',
      measured: `${ms(first)} and ${ms(all)}`,
      baseline: `${tell(loading.processor)} while all come`,
    },
    stutter('scrolled through 10,000 requests, a screen a frame', scrolling),
  ]
}

/** Whether the list is as long as the journal, but for the requests of the page itself. */
const HAS_ALL = `() => Number(document.querySelector('.requests li')?.ariaSetSize) > ${REQUESTS - 100}`

const startOf = ({ page }: MeasuredPage): Promise<number> => page.evaluate<number>('performance.timeOrigin')

/** Creates servers until there are enough or the time is over, twenty at a time, and puts each to sleep. */
async function fillUp(berth: Instance): Promise<void> {
  const { servers } = await berth.call('GET', '/servers')
  const end = Date.now() + FILL_MS
  for (let missing = SERVERS - servers.length; missing > 0 && Date.now() < end; missing -= 20) {
    const batch = Array.from({ length: Math.min(20, missing) }, async (_, n) => {
      const { id } = await berth.call('POST', '/servers', { task: `server ${missing - n}` })
      await berth.call('POST', `/servers/${id}/actions`, { action: 'stop' })
    })
    await Promise.all(batch)
  }
}

/**
 * Start → first authenticated response → end, in turn with an executable that has no dashboard: the processor's time, which
 * the machine's other work changes less than the clock.
 */
async function startAgainst(program: string): Promise<Row> {
  const flags = ['serve', '--json', '--port', '0', '--log-level', 'error', '--ephemeral']
  const now: { took: number; processor: number }[] = []
  const before: { took: number; processor: number }[] = []
  for (let round = -2; round < STARTS; round += 1) {
    const runs = [
      { path: executable, taken: now },
      { path: program, taken: before },
    ]
    // Each goes first in turn, so that whatever else the machine does falls on both.
    for (const { path, taken } of round % 2 === 0 ? runs.toReversed() : runs) {
      const start = await measuredStart([path, ...flags])
      if (round >= 0) taken.push(start)
    }
  }
  const [used, usedBefore] = [now, before].map((all) => median(all.map(({ processor }) => processor)))
  const [took, tookBefore] = [now, before].map((all) => median(all.map((start) => start.took)))
  const ratio = (used ?? 0) / (usedBefore ?? 1)
  return {
    what: `start, first authenticated response and end: processor time, median of ${STARTS}`,
    measured: `${ms(used ?? 0)} (first response after ${ms(took ?? 0)})`,
    baseline: `earlier berth ${ms(usedBefore ?? 0)} (${ms(tookBefore ?? 0)})`,
    ratio: times(ratio),
    goal: '≤ 1.02 ×',
    met: ratio <= 1.02,
  }
}

/** Waits for the end of a log, for a time. Resolves to words that say how long it took. */
async function timeOf(end: Promise<unknown>): Promise<string> {
  const begun = Date.now()
  const isOver = await Promise.race([end.then(() => true), Bun.sleep(LOG_MS).then(() => false)])
  const seconds = ((Date.now() - begun) / 1_000).toFixed(1)
  return isOver ? `over in ${seconds} s` : `left after ${seconds} s`
}

const stutter = (what: string, tasks: LongTasks): Row => ({
  what: `${what}: tasks with over 50 ms of processor time, longest`,
  measured: tell(tasks.processor),
  baseline: `by the clock ${tell(tasks.clock)}; equal work took ${ms(tasks.equalWork[0])} to ${ms(tasks.equalWork[1])}`,
  goal: 'none',
  met: tasks.processor.count === 0,
})

const tell = ({ count, longest }: Tasks): string => `${count}, ${ms(longest)}`

const kilobytes = (bytes: number): string => `${(bytes / 1_000).toFixed(1)} KB`
