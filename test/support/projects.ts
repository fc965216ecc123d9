import type { TestBerth } from './berth.ts'
import { until } from './processes.ts'

/** A project as the API shows it. */
export interface ShownProject {
  id: string
  server_id: string
  name: string
  slug: string
  url: string | null
  runtime_status: string
  visibility: string
  init_phase: string | null
  init_run_id?: string
  crash?: { exit_code: number | null; [field: string]: unknown }
  [field: string]: unknown
}

/** Phases in which nothing goes on by itself. */
const AT_REST = ['ready', 'failed', 'awaiting_secrets', null]

/** How long a bring-up of a test may take: other tests may keep the machine busy. */
const PATIENCE_MS = 60_000

/** A project as it is now. */
export async function shown(berth: TestBerth, id: string): Promise<ShownProject> {
  return (await berth.call('GET', `/projects/${id}`)).body
}

/** Makes a project; it may not be up yet. */
export async function created(berth: TestBerth, serverId: string, wishes: object): Promise<ShownProject> {
  const { status, body } = await berth.call('POST', `/servers/${serverId}/projects`, wishes)
  if (status !== 201) throw new Error(`no project: ${status} ${JSON.stringify(body)}`)
  return body
}

/** Waits until the bring-up of a project is over, or waits itself. */
export async function settled(berth: TestBerth, id: string, patienceMs = PATIENCE_MS): Promise<ShownProject> {
  let project = await shown(berth, id)
  await until(
    async () => {
      project = await shown(berth, id)
      return AT_REST.includes(project.init_phase)
    },
    `the bring-up of ${id} to come to rest`,
    patienceMs,
  )
  return project
}

/** What a project has logged, as text. */
export async function logged(berth: TestBerth, id: string): Promise<string> {
  const { body } = await berth.call('GET', `/projects/${id}/logs?tail=500`)
  return body.logs.map((line: { text: string }) => line.text).join('\n')
}

/** Makes a project and waits until it is up. Throws, with its log, where it is not. */
export async function ready(
  berth: TestBerth,
  serverId: string,
  wishes: object,
  patienceMs?: number,
): Promise<ShownProject> {
  const project = await settled(berth, (await created(berth, serverId, wishes)).id, patienceMs)
  if (project.init_phase === 'ready') return project
  throw new Error(`${project.init_phase}: ${await logged(berth, project.id)}`)
}

/** Files as the source of a project: an archive made by this machine's tar. */
export async function archiveOf(
  files: Readonly<Record<string, string>>,
): Promise<{ type: 'archive'; data: string }> {
  const { mkdtempSync, mkdirSync, rmSync, writeFileSync } = await import('node:fs')
  const { tmpdir } = await import('node:os')
  const { dirname, join } = await import('node:path')
  const folder = mkdtempSync(join(tmpdir(), 'berth-archive-'))
  try {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), content)
    }
    const tar = Bun.spawnSync(['tar', '-cz', '-C', folder, '.'])
    return { type: 'archive', data: tar.stdout.toString('base64') }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
