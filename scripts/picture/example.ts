/** An instance that is in use: what a small team's afternoon leaves behind. */

/** Where an instance is, and what it is called with. */
export interface Instance {
  readonly baseUrl: string
  readonly apiKey: string
  readonly adminToken: string
}

type Json = Record<string, unknown>

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

/**
 * Fills a fresh instance with servers, projects, tasks, a build, webhooks, a fault and a snapshot, through its API.
 *
 * @returns the id of the server that most of it is on
 * @throws Error with the response, where a call is refused that should not be
 */
export async function fillWithExample(instance: Instance): Promise<string> {
  const { baseUrl } = instance
  const api = (method: string, path: string, body?: Json): Promise<Json> =>
    call(`${baseUrl}${path}`, instance.apiKey, method, body)
  const control = (method: string, path: string, body?: Json): Promise<Json> =>
    call(`${baseUrl}/_berth${path}`, instance.adminToken, method, body)

  const inbox = `${baseUrl}/_berth/inbox`
  await api('POST', '/webhooks', { url: `${inbox}/billing` })
  await api('POST', '/webhooks', {
    url: `${inbox}/chat?respond=503`,
    events: ['task.completed', 'task.failed'],
  })

  const [shop, worker, archive] = await Promise.all(
    [
      { task: 'shop', tier: 'medium' },
      { task: 'nightly-reports', tier: 'small' },
      { task: 'archive-2025', tier: 'small', region: 'eu-west' },
    ].map(async (wishes) => String((await api('POST', '/servers', wishes)).id)),
  )
  await api('PUT', `/servers/${shop}/files`, { path: 'README.md', content: '# Shop\n\nNotes and prices.\n' })
  await api('POST', `/servers/${shop}/exec`, { command: 'git --version; uname -sr' })
  await api('POST', `/servers/${archive}/actions`, { action: 'stop' })

  const notes = await api('POST', `/servers/${shop}/projects`, {
    name: 'Notes',
    template: 'sqlite-notes',
    visibility: 'public',
  })
  const broken = await api('POST', `/servers/${worker}/projects`, { name: 'Report mailer' })
  await api('PUT', `/servers/${worker}/files`, {
    path: `projects/${broken.slug}/server.ts`,
    content: "import { deliver } from './mail'\n\nBun.serve({ port: process.env.PORT, fetch: deliver })\n",
  })
  await api('PUT', `/servers/${worker}/files`, {
    path: `projects/${broken.slug}/package.json`,
    content: '{ "name": "report-mailer", "scripts": { "start": "bun server.ts" } }\n',
  })
  await api('POST', `/projects/${broken.id}/init`, {})
  await phaseOf(api, notes.id, 'ready')
  await phaseOf(api, broken.id, 'failed')

  const done = await api('POST', `/servers/${shop}/tasks`, { goal: COMPLETED })
  const failed = await api('POST', `/servers/${worker}/tasks`, { goal: FAILED })
  await api('POST', `/servers/${worker}/builds`, { goal: BUILD })
  await statusOf(api, shop, done.task_id, 'completed')
  await statusOf(api, worker, failed.task_id, 'failed')

  await api('GET', '/servers/srv_unknown').catch(() => undefined)
  await api('POST', `/servers/${shop}/exec`, { cmd: 'ls' }).catch(() => undefined)
  await control('POST', '/faults', {
    match: { operation: 'exec.run' },
    effect: { error: { status: 503 } },
    after: 20,
    times: 2,
  })
  await control('POST', '/snapshots', { name: 'before-the-upgrade' })
  // The second try comes after 5 s, and is refused too.
  await until(async () => {
    const { deliveries } = await control('GET', '/deliveries')
    return (deliveries as { attempts: unknown[] }[]).some(({ attempts }) => attempts.length > 1)
  }, 'a second attempt of a delivery')
  const asking = await api('POST', `/servers/${shop}/tasks`, { goal: ASKING })
  await statusOf(api, shop, asking.task_id, 'awaiting_input')
  return String(shop)
}

type Call = (method: string, path: string, body?: Json) => Promise<Json>

const phaseOf = (api: Call, projectId: unknown, phase: string): Promise<void> =>
  until(async () => (await api('GET', `/projects/${projectId}`)).init_phase === phase, `project ${phase}`)

const statusOf = (api: Call, serverId: unknown, taskId: unknown, status: string): Promise<void> =>
  until(async () => {
    const { task } = await api('GET', `/servers/${serverId}/tasks/${taskId}`)
    return (task as Json).status === status
  }, `task ${status}`)

/** Waits until something is so, for 20 s at most. */
async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + 20_000
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`Waited 20 s for: ${what}.`)
    await Bun.sleep(250)
  }
}

async function call(url: string, credential: string, method: string, body?: Json): Promise<Json> {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`)
  return JSON.parse(text)
}
