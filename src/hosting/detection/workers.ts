import { MANIFEST_FILE, type Manifest } from '../app-runtime/manifest.ts'
import { AppError, type AppPlan, type LeftOut, type StartPlan } from '../app-runtime/plan.ts'
import type { SourceDirectory } from './source.ts'

/** The commands of a Procfile by process type, in its order. */
export type Procfile = ReadonlyMap<string, string>

/** Reads a directory's Procfile. Skips invalid lines; of two lines of a name the first counts. */
export async function readProcfile(directory: SourceDirectory): Promise<Procfile> {
  const found = new Map<string, string>()
  for (const line of (await directory.textOf('Procfile')).split(/\r?\n/)) {
    const [, name, command] = /^([A-Za-z0-9_-]+)\s*:\s*(\S.*)$/.exec(line.trim()) ?? []
    if (name !== undefined && command !== undefined && !found.has(name)) found.set(name, command)
  }
  return found
}

/** Matches the process types of a Procfile that are workers, as other platforms name them. */
const WORKER = /^(?:clock|scheduler|beat|cron|queue)$|worker$/i

/** The name of the worker that a project of workers alone consists of. */
const ONLY = 'worker'

/** What is known of an app before its workers. */
interface Known {
  readonly manifest: Manifest
  readonly procfile: Procfile
  /** How the app starts; null if that is not known. */
  readonly start: StartPlan | null
  /** Whether somebody has said that it is a worker. */
  readonly isWorker: boolean
}

/** What starts of an app, and what does not. */
interface Started extends Pick<AppPlan, 'workers'> {
  readonly start: StartPlan | null
  /** Lines of its Procfile that do not start, and why. */
  readonly leftOut: readonly LeftOut[]
}

/**
 * Determines the workers of an app: those of its manifest, else those of its Procfile. A project that is said to be a
 * worker, or has nothing else, consists of them.
 *
 * @throws AppError if it is said to be a worker and has no command
 */
export function planWorkers({ manifest, procfile, start, isWorker }: Known): Started {
  const lines = [...procfile].filter(([name]) => name !== 'web' && name !== 'release')
  const stated = manifest.workers ?? Object.fromEntries(lines.filter(([name]) => WORKER.test(name)))
  const isAlone = isWorker || (start === null && Object.keys(stated).length > 0)
  const workers = isAlone && isWorker ? { ...mainOf({ manifest, start }, stated), ...stated } : stated
  const leftOut = lines
    .filter(([name]) => !(name in workers))
    .map(([name, command]) => ({
      what: `"${name}" of the Procfile`,
      why: `its name is not that of a worker. To start it, put this into ${MANIFEST_FILE}: ${JSON.stringify({ workers: { ...stated, [name]: command } })}`,
    }))
  return { start: isAlone ? { kind: 'workers' } : start, workers, leftOut }
}

function mainOf(
  { manifest, start }: Pick<Known, 'manifest' | 'start'>,
  workers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const isStated = manifest.start !== undefined
  if (!isStated && Object.keys(workers).length > 0) return {}
  if (start?.kind !== 'command')
    throw new AppError(
      `Nothing here says how the worker starts. Add a ${MANIFEST_FILE} with its command, such as {"kind": "worker", "start": "node worker.js"}.`,
    )
  if (ONLY in workers)
    throw new AppError(
      `${MANIFEST_FILE}: "start" is the worker "${ONLY}" here, so "workers" cannot have one of that name. Call it something else.`,
    )
  return { [ONLY]: start.command }
}

/** Returns the fields of a manifest that start the workers of an app. */
export function workersJson({ start, workers }: Pick<AppPlan, 'start' | 'workers'>) {
  const { [ONLY]: main, ...others } = workers
  const isAlone = start.kind === 'workers'
  const beside = isAlone ? others : workers
  return {
    ...(isAlone && { kind: 'worker', ...(main !== undefined && { start: main }) }),
    ...(Object.keys(beside).length > 0 && { workers: beside }),
  }
}
