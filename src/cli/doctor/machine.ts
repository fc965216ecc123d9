import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runHelper } from '../../runtime/run-helper.ts'
import { absent, type Finding, failed, ok } from './finding.ts'

/** Milliseconds that git may take to say its version. */
const GIT_MS = 5_000

/** A program that cannot be run. */
const BROKEN = { exitCode: null, stdout: '' }

/** git, which projects from a repository need. */
export async function examineGit(path: string): Promise<Finding> {
  const program = Bun.which('git', { PATH: path })
  if (!program) return absent('git', 'not found', 'Install git: servers share the one of this machine.')
  const { exitCode, stdout } = await runHelper([program, '--version'], { timeoutMs: GIT_MS }).catch(
    () => BROKEN,
  )
  if (exitCode !== 0) return absent('git', `${program} does not run`, 'Install git anew.')
  return ok('git', `${stdout.trim().replace(/^git version /, '')} (${program})`)
}

/**
 * Whether the port can be listened on, by doing so.
 *
 * @param runningUrl the address of the instance that runs here, which may be the one that has it
 */
export function examinePort(host: string, port: number, runningUrl: string | null): Finding {
  const name = `port ${port}`
  if (port === 0) return ok('port', 'any free one')
  try {
    Bun.listen({ hostname: host, port, socket: { data() {} } }).stop(true)
    return ok(name, 'free')
  } catch (error) {
    if (runningUrl && new URL(runningUrl).port === String(port)) return ok(name, 'taken by the running berth')
    const remedy = 'Stop what listens there, or choose another with --port (0 for any free one).'
    return absent(name, `cannot be listened on: ${messageOf(error)}`, remedy)
  }
}

/** Whether the data directory, or where it would be made, takes files: by writing there. */
export function examineDirectory(directory: string): Finding {
  let existing = directory
  while (!existsSync(existing)) existing = dirname(existing)
  try {
    rmSync(mkdtempSync(join(existing, '.berth-doctor-')), { recursive: true })
    const { bavail, bsize } = statfsSync(existing)
    return ok('data folder', `${directory}, ${((bavail * bsize) / 1e9).toFixed(1)} GB free`)
  } catch (error) {
    return failed(
      'data folder',
      `${directory} cannot be written: ${messageOf(error)}`,
      'Mend its permissions or free its disk, or choose another with --data.',
    )
  }
}

/**
 * Milliseconds after which an instance without a response counts as hanging. A refused connection fails at once, and on a
 * busy machine a response may take seconds.
 */
const HANG_MS = 10_000

/** What the instance that the data directory names says of itself. */
export async function examineInstance(url: string | null): Promise<Finding> {
  const name = 'instance'
  if (url === null) return { name, status: 'absent', detail: 'none runs on the data folder' }
  try {
    const response = await fetch(`${url}/_berth/health`, { signal: AbortSignal.timeout(HANG_MS) })
    const { version } = (await response.json()) as { version?: unknown }
    if (typeof version === 'string') return ok(name, `berth ${version} runs at ${url}`)
  } catch {}
  return absent(
    name,
    `the one named in the directory does not answer at ${url}`,
    'Start it anew with "berth serve".',
  )
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
