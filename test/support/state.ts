import { Database } from 'bun:sqlite'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestBerth } from './berth.ts'
import { built } from './builds.ts'
import { accessToken } from './oauth.ts'
import { until } from './processes.ts'
import { archiveOf, ready } from './projects.ts'
import { setScenarios, TaskCalls } from './tasks.ts'

/** Every row of every table, by table; what is sealed stands as `sealed`, since sealing takes a new nonce each time. */
export function dumpTables(dataDir: string): Record<string, Record<string, unknown>[]> {
  const database = new Database(join(dataDir, 'berth.db'), { readonly: true })
  try {
    const names = database
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
      )
      .all()
    return Object.fromEntries(
      names.map(({ name }) => [
        name,
        database.query<Record<string, unknown>, []>(`SELECT * FROM "${name}"`).all().map(withoutSealed),
      ]),
    )
  } finally {
    database.close()
  }
}

/**
 * The same once what the first account's servers store is measured, which is done in the background after a change.
 *
 * @param berth made with a seed: there a list waits for it
 */
export async function measuredTables(berth: TestBerth): Promise<ReturnType<typeof dumpTables>> {
  await berth.call('GET', '/servers')
  // That the key was used is written when the answer is on its way, and before another is.
  await berth.control('GET', '/clock')
  return dumpTables(berth.dataDir)
}

const withoutSealed = (row: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      column,
      value instanceof Uint8Array ? (value[0] === 1 ? 'sealed' : Buffer.from(value).toString('hex')) : value,
    ]),
  )

/** Every file, folder and link below a folder, with what it holds and its mode. */
export function treeOf(folder: string, below = ''): Record<string, string> {
  const tree: Record<string, string> = {}
  for (const name of readdirSync(join(folder, below)).sort()) {
    const path = join(below, name)
    const full = join(folder, path)
    const stats = lstatSync(full)
    const mode = (stats.mode & 0o7777).toString(8)
    if (stats.isSymbolicLink()) tree[path] = `link to ${readlinkSync(full)}`
    else if (stats.isDirectory()) Object.assign(tree, { [path]: `folder ${mode}` }, treeOf(folder, path))
    else if (stats.isFile())
      tree[path] = `${mode} ${new Bun.CryptoHasher('sha1').update(readFileSync(full)).digest('hex')}`
  }
  return tree
}

/** What was made by `useEverything`. */
export interface Used {
  serverId: string
  projectId: string
  projectUrl: string
  heldTask: string
}

/**
 * Uses all that berth has, so that every table has a row and every folder a file: servers with files and commands,
 * accounts, keys, programs that were let in, secrets, tasks, builds, projects, deployments, webhooks, scenarios, faults, inboxes. Nothing of it
 * is about to change by itself when this resolves, but for one task that is held.
 *
 * @param berth made with `allow-local-webhooks`
 */
export async function useEverything(berth: TestBerth): Promise<Used> {
  const ok = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
    const answer = await berth.call(method, path, body, headers)
    if (answer.status >= 300)
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const admin = async (method: string, path: string, body?: unknown) => {
    const answer = await berth.control(method, path, body)
    if (answer.status >= 300)
      throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const { api_key: otherKey } = await admin('POST', '/accounts', { label: 'other', budget_cap: 50 })
  await ok('POST', '/servers', { task: 'of another' }, { authorization: `Bearer ${otherKey}` })

  await ok('POST', '/webhooks', { url: `${berth.info.base_url}/_berth/inbox/all` })
  const serverId = (await ok('POST', '/servers', { task: 'used' }, { 'idempotency-key': 'once' })).id
  await berth.exec(
    serverId,
    'mkdir -p deep/er && echo hello > deep/er/file && ln -s deep/er/file link && chmod 700 deep',
  )
  await berth.exec(serverId, 'sleep 1000 & echo started')
  await ok('POST', '/keys', { label: 'limited', allowed_server_ids: [serverId] })
  await accessToken(berth, { servers: [serverId] })
  await ok('PUT', '/secrets', { server_id: serverId, secrets: { TOKEN: 'not to be read' } })

  await setScenarios(berth, [
    { name: 'held', match: 'wait for me', steps: [{ hold: true }, { complete: 'done' }] },
  ])
  const tasks = new TaskCalls(berth, serverId)
  await tasks.run('run: echo hi > from-task')
  const heldTask = await tasks.begin('wait for me')

  const app =
    'Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response("app") })'
  const project = await ready(berth, serverId, {
    name: 'An app',
    visibility: 'public',
    source: await archiveOf({ 'server.ts': app }),
  })
  await built(berth, await berth.server({ task: 'built' }), 'A page about boats')

  await admin('POST', '/faults', {
    match: { operation: 'templates.list' },
    effect: { error: { status: 503 } },
    times: 1,
  })
  await until(async () => {
    const { deliveries } = await admin('GET', '/deliveries')
    return (
      deliveries.length > 5 && deliveries.every(({ status }: { status: string }) => status === 'delivered')
    )
  }, 'every delivery to have arrived')
  return { serverId, projectId: project.id, projectUrl: String(project.url), heldTask }
}
