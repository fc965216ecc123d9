/** Writes docs/dashboard.png, the picture of the README: the timeline of an instance that is in use. Needs Chromium. */
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { browserPath } from '../test/support/browser.ts'
import { type Instance, startInstance } from './benchmarks/instance.ts'

const root = join(import.meta.dir, '..')
const file = join(root, 'docs/dashboard.png')

/** A goal that the scripted agent works on, asks about and then waits. */
const ASKING = `Upgrade the database schema
run: mkdir -p migrations && echo "alter table notes add column tags text;" > migrations/0004_tags.sql
write: CHANGELOG.md <<< ## 1.4.0: notes have tags
ask: The migration rewrites 40,000 rows. Shall I run it now, or prepare it for tonight?
complete: The migration is done.`

const COMPLETED = `Add a health check to the API
run: mkdir -p src && ls
write: src/health.ts <<< export const health = () => Response.json({ status: 'ok' })
run: echo "12 pass, 0 fail"
complete: GET /health responds with the state of the database.`

const FAILED = `Update the dependencies
run: echo "error: left-pad@9.0.0 needs node >= 30" >&2; exit 1
complete: All packages are current.`

const BUILD = `A page with the opening hours
write: index.html <<< <!doctype html><title>Hours</title><h1>Open from 9 to 5</h1>
complete: The page is there.`

await using berth = await startInstance(
  ['--ephemeral', '--project-ports', '21000-21099', '--allow-local-webhooks'],
  [process.execPath, join(root, 'src/main.ts')],
)
await fill(berth)
await photograph(berth)
console.error(`Wrote docs/dashboard.png: ${Math.round(Bun.file(file).size / 1_000)} kB.`)

/** Takes the picture, in a window as wide as the README's readers see it. */
async function photograph({ url, control }: Instance): Promise<void> {
  if (browserPath === null) throw new Error('No Chromium is installed (apt-get install chromium).')
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: ['--no-sandbox', '--disable-gpu'],
  })
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' })
    await page.goto((await control('POST', '/sign-in-links', { return_to: '/' })).url)
    await page.goto(`${url}/`)
    await page.locator('.connection.live').first().waitFor()
    await page.locator('.timeline .entry').first().waitFor()
    await page.screenshot({ path: file })
  } finally {
    await browser.close()
  }
}

/** Fills a fresh instance with servers, projects, tasks, a build, webhooks, a fault and a snapshot, through its API. */
async function fill({ url, call, control }: Instance): Promise<void> {
  const attemptsOf = async (): Promise<number[]> =>
    (await control('GET', '/deliveries')).deliveries.map(
      (one: { attempts: unknown[] }) => one.attempts.length,
    )
  const inbox = `${url}/_berth/inbox`
  await call('POST', '/webhooks', { url: `${inbox}/billing` })
  await call('POST', '/webhooks', {
    url: `${inbox}/chat?respond=503`,
    events: ['task.completed', 'task.failed'],
  })

  const [shop, worker, archive] = await Promise.all(
    [
      { task: 'shop', tier: 'medium' },
      { task: 'nightly-reports', tier: 'small' },
      { task: 'archive-2025', tier: 'small', region: 'eu-west' },
    ].map(async (wishes) => String((await call('POST', '/servers', wishes)).id)),
  )
  await call('PUT', `/servers/${shop}/files`, { path: 'README.md', content: '# Shop\n\nNotes and prices.\n' })
  await call('POST', `/servers/${shop}/exec`, { command: 'git --version; uname -sr' })
  await call('POST', `/servers/${archive}/actions`, { action: 'stop' })

  const notes = await call('POST', `/servers/${shop}/projects`, {
    name: 'Notes',
    template: 'sqlite-notes',
    visibility: 'public',
  })
  const broken = await call('POST', `/servers/${worker}/projects`, { name: 'Report mailer' })
  await call('PUT', `/servers/${worker}/files`, {
    path: `projects/${broken.slug}/server.ts`,
    content: "import { deliver } from './mail'\n\nBun.serve({ port: process.env.PORT, fetch: deliver })\n",
  })
  await call('PUT', `/servers/${worker}/files`, {
    path: `projects/${broken.slug}/package.json`,
    content: '{ "name": "report-mailer", "scripts": { "start": "bun server.ts" } }\n',
  })
  await call('POST', `/projects/${broken.id}/init`, {})
  await control('GET', `/wait?project=${notes.id}&until=ready`)
  await control('GET', `/wait?project=${broken.id}&until=failed`)

  const done = await call('POST', `/servers/${shop}/tasks`, { goal: COMPLETED })
  const failed = await call('POST', `/servers/${worker}/tasks`, { goal: FAILED })
  await call('POST', `/servers/${worker}/builds`, { goal: BUILD })
  await control('GET', `/wait?task=${done.task_id}&until=completed`)
  await control('GET', `/wait?task=${failed.task_id}&until=failed`)

  await call('GET', '/servers/srv_unknown').catch(() => undefined)
  await call('POST', `/servers/${shop}/exec`, { cmd: 'ls' }).catch(() => undefined)
  await control('POST', '/faults', {
    match: { operation: 'exec.run' },
    effect: { error: { status: 503 } },
    after: 20,
    times: 2,
  })
  await control('POST', '/snapshots', { name: 'before-the-upgrade' })
  // The second try comes after 5 s, and is refused too.
  while ((await attemptsOf()).every((attempts) => attempts < 2)) await Bun.sleep(250)
  const asking = await call('POST', `/servers/${shop}/tasks`, { goal: ASKING })
  await control('GET', `/wait?task=${asking.task_id}&until=awaiting_input`)
}
