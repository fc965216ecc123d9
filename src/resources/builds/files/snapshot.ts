import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'

/**
 * Folders of packages, caches and compilers: no one looks for a build's work in them. The workspace is the home folder
 * of what runs there, so that some tools keep theirs in it.
 */
const LEFT_OUT = new Set([
  ...['node_modules', '.git', '.venv', 'venv', '__pycache__', '.cache', 'target'],
  ...['.bun', '.npm', '.pnpm-store', '.deno', '.cargo', '.rustup', '.local', '.config'],
])

/** Files that are looked at before everything else may go on for a moment. */
const SLICE = 200

/** What differs between two looks at a workspace; paths, sorted. */
export interface Changes {
  readonly made: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** A workspace's files at one moment: path → what tells whether it is still the same. */
export type Snapshot = ReadonlyMap<string, FileState>

/** One file at one moment. */
export interface FileState {
  /** Another for another file, and after each change of this one. */
  readonly identity: string
  /** When anything of it last changed, milliseconds since 1970; no program can set this back. */
  readonly changedAt: number
}

/** Looks at all files that a build may be concerned with. */
export async function takeSnapshot(
  workspace: Workspace,
  isElsewhere: (path: string) => boolean,
): Promise<Snapshot> {
  const files = new Map<string, FileState>()
  let looked = 0
  for (const path of await workspace.list({ all: false })) {
    if (isLeftOut(path) || isElsewhere(path)) continue
    looked += 1
    if (looked % SLICE === 0) await new Promise<void>((resolve) => setImmediate(resolve))
    const state = await stateOf(workspace, path)
    if (state !== null) files.set(path, state)
  }
  return files
}

/** What has become of the files between two moments. */
export function compare(before: Snapshot, after: Snapshot): Changes {
  const paths = [...after.keys()]
  const isOld = (path: string): boolean => before.has(path)
  return {
    made: paths.filter((path) => !isOld(path)),
    changed: paths.filter((path) => isOld(path) && before.get(path)?.identity !== after.get(path)?.identity),
    removed: [...before.keys()].filter((path) => !after.has(path)),
  }
}

/** Paths of files that were made or changed, sorted by code point as listings are. */
export const written = ({ made, changed }: Changes): string[] =>
  [...made, ...changed].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

const isLeftOut = (path: string): boolean =>
  path
    .split('/')
    .slice(0, -1)
    .some((name) => LEFT_OUT.has(name))

/** Null where it has gone meanwhile. */
async function stateOf(workspace: Workspace, path: string): Promise<FileState | null> {
  try {
    using file = await workspace.open(path)
    return { identity: file.identity, changedAt: file.changedAt }
  } catch (error) {
    if (error instanceof WorkspaceError) return null
    throw error
  }
}
