import { type Workspace, WorkspaceError } from '../compute/workspace.ts'

/** Number of links that Linux follows in one path. @bound system */
const MAX_LINKS = 40

/** A source in which the directory of an app is looked for. Paths are relative to the source. */
export interface LinkedTree {
  /** Returns the target of the link at a path whose parents are no links; null if there is no link. */
  linkAt(path: string): string | null | Promise<string | null>
  /** Reports whether there is a directory at a path that leads through no link. */
  hasDirectory(path: string): boolean | Promise<boolean>
}

/** A directory, or why there is none, as a sentence. */
export type FoundDirectory =
  | { readonly path: string; readonly problem: null }
  | { readonly path: null; readonly problem: string }

/**
 * Finds the directory of an app in its source. Follows links as long as none leads out.
 *
 * @param directory relative to the source, without `..`
 */
export async function findAppDirectory(tree: LinkedTree, directory: string): Promise<FoundDirectory> {
  const shown = JSON.stringify(directory)
  const leadsOut = { path: null, problem: `The directory ${shown} is a link that leads out of the code.` }
  const walked: string[] = []
  // Last first: the next name is taken off the end.
  const ahead = directory.split('/').reverse()
  let followed = 0
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    if (name === '' || name === '.') continue
    if (name === '..') {
      if (walked.pop() === undefined) return leadsOut
      continue
    }
    walked.push(name)
    const target = await tree.linkAt(walked.join('/'))
    if (target === null) continue
    followed += 1
    if (target.startsWith('/') || followed > MAX_LINKS) return leadsOut
    walked.pop()
    ahead.push(...target.split('/').reverse())
  }
  const path = walked.join('/')
  if (path === '' || (await tree.hasDirectory(path))) return { path, problem: null }
  return { path: null, problem: `There is no directory ${shown} in the code.` }
}

/** Returns a directory of a workspace as such a source. */
export function workspaceTree(workspace: Workspace, directory: string): LinkedTree {
  const inWorkspace = (path: string) => [directory, path].filter(Boolean).join('/')
  return {
    async linkAt(path) {
      const entries = await ifThere(workspace.manifest(directory, [path]))
      return entries?.find((entry) => entry.kind === 'link')?.target ?? null
    },
    hasDirectory: async (path) => (await ifThere(workspace.stat(inWorkspace(path))))?.kind === 'directory',
  }
}

/** Returns null in place of a failure that means that there is nothing at the path. */
async function ifThere<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    if (error instanceof WorkspaceError) return null
    throw error
  }
}
