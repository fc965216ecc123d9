import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'

/**
 * Directories of packages, caches and compilers, which are not part of an app. Some are there because the workspace is
 * the home directory of the programs that run in it.
 */
const EXCLUDED_DIRECTORIES = new Set([
  ...['node_modules', '.git', '.venv', 'venv', '__pycache__', '.cache', 'target'],
  ...['.bun', '.npm', '.pnpm-store', '.deno', '.cargo', '.rustup', '.local', '.config'],
])

/** Number of files that are examined before other work gets a turn. */
const FILES_PER_TURN = 200

/** The differences between two snapshots: sorted paths. */
export interface Changes {
  readonly created: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** The files of a workspace at one moment, by path. */
export type Snapshot = ReadonlyMap<string, FileState>

/** The state of a file at one moment. */
interface FileState {
  /** Differs between files, and after each change of a file. */
  readonly identity: string
  /** Time of the last change (ctime), in milliseconds since 1970. Programs cannot set it back. */
  readonly changedAt: number
}

/** Takes a snapshot of the files that belong to the app. */
export async function takeSnapshot(
  workspace: Workspace,
  isExcluded: (path: string) => boolean,
): Promise<Snapshot> {
  const files = new Map<string, FileState>()
  let count = 0
  for (const path of await workspace.list({ all: false })) {
    if (isInExcludedDirectory(path) || isExcluded(path)) continue
    count += 1
    if (count % FILES_PER_TURN === 0) await new Promise<void>((resolve) => setImmediate(resolve))
    const state = await stateOf(workspace, path)
    if (state !== null) files.set(path, state)
  }
  return files
}

/** Returns the differences between two snapshots. */
export function diffSnapshots(before: Snapshot, after: Snapshot): Changes {
  const paths = [...after.keys()]
  const isOld = (path: string): boolean => before.has(path)
  return {
    created: paths.filter((path) => !isOld(path)),
    changed: paths.filter((path) => isOld(path) && before.get(path)?.identity !== after.get(path)?.identity),
    removed: [...before.keys()].filter((path) => !after.has(path)),
  }
}

/** Returns the paths of created and changed files, sorted by code point as listings are. */
export const writtenPaths = ({ created, changed }: Changes): string[] =>
  [...created, ...changed].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

const isInExcludedDirectory = (path: string): boolean =>
  path
    .split('/')
    .slice(0, -1)
    .some((name) => EXCLUDED_DIRECTORIES.has(name))

/** Returns the state of a file; null if it no longer exists. */
async function stateOf(workspace: Workspace, path: string): Promise<FileState | null> {
  try {
    using file = await workspace.open(path)
    return { identity: file.identity, changedAt: file.changedAt }
  } catch (error) {
    if (error instanceof WorkspaceError) return null
    throw error
  }
}
