import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'
import type { TemplateCatalog } from '../../templates/catalog.ts'
import type { TemplateFile } from '../../templates/files.ts'
import type { BuildRow } from '../table.ts'
import type { Snapshot } from './snapshot.ts'

/** The template files in a workspace that earlier builds copied. */
export interface CopiedFiles {
  /** The id of the template that was copied last. */
  readonly template: string
  /** Path → template id of the files that are unchanged since. */
  readonly files: ReadonlyMap<string, string>
  /** Describes a change that the user has made since, for a message; null if there is none. */
  readonly modification: string | null
}

/** Directories of tools' own files: the workspace is the home directory of the programs that run there. */
const HIDDEN_DIRECTORY = /^\.[^/]+\//

/** The options of `findCopiedFiles`. */
interface FindOptions {
  workspace: Workspace
  snapshot: Snapshot
  catalog: TemplateCatalog
  /** Builds of the server that copied a template, newest first. */
  builds: readonly BuildRow[]
  /** Reports whether a path is one of berth's own plans. */
  isPlan: (path: string) => Promise<boolean>
}

/** Finds the unchanged template files of a workspace. Returns null if no build has copied a template. */
export async function findCopiedFiles(options: FindOptions): Promise<CopiedFiles | null> {
  const [last] = options.builds
  if (last?.template == null) return null
  const files = new Map<string, string>()
  let modification: string | null = null
  for (const { template, scaffold, steps } of options.builds) {
    const originals = await loadTemplateFiles(options.catalog, template)
    // An interrupted copy may not contain all files.
    const isWhole = steps.find(({ key }) => key === 'scaffold')?.status === 'done'
    for (const path of scaffold) {
      if (files.has(path) || template === null) continue
      const state = await compareFile(options, path, originals.get(path))
      if (state === 'same') files.set(path, template)
      else if (scaffold === last.scaffold && (state === 'changed' || isWhole)) {
        modification ??= `${path} was ${state}`
      }
    }
  }
  return {
    template: last.template,
    files,
    modification: modification ?? (await findAddition(options, last, files)),
  }
}

/** Finds a file that the user has added after the template. Skips files that a template's app creates by itself. */
async function findAddition(
  { snapshot, catalog, builds, isPlan }: FindOptions,
  { template }: BuildRow,
  copied: ReadonlyMap<string, string>,
): Promise<string | null> {
  const copiedAt = [...copied]
    .filter(([, of]) => of === template)
    .map(([path]) => snapshot.get(path)?.changedAt ?? Number.POSITIVE_INFINITY)
  const since = Math.min(...copiedAt)
  const isGenerated = await loadIgnoreRules(catalog, new Set(builds.map((build) => build.template)))
  for (const [path, { changedAt }] of snapshot) {
    if (copied.has(path) || changedAt < since || HIDDEN_DIRECTORY.test(path) || isGenerated(path)) continue
    if (!(await isPlan(path))) return `${path} was added`
  }
  return null
}

/** Returns a function that reports whether one of the templates' `.gitignore` files ignores a path. */
async function loadIgnoreRules(
  catalog: TemplateCatalog,
  templates: ReadonlySet<string | null>,
): Promise<(path: string) => boolean> {
  const { default: ignore } = await import('ignore')
  const rules = await Promise.all(
    [...templates].map(async (template) => {
      const bytes = (await loadTemplateFiles(catalog, template)).get('.gitignore')?.bytes
      return ignore().add(bytes === undefined ? '' : new TextDecoder().decode(bytes))
    }),
  )
  return (path) => rules.some((one) => one.ignores(path))
}

/** Compares a file with its original. */
export async function compareFile(
  { workspace }: Pick<FindOptions, 'workspace'>,
  path: string,
  original: TemplateFile | undefined,
): Promise<'same' | 'changed' | 'removed'> {
  try {
    const bytes = await workspace.read(path, original?.bytes.length ?? 0)
    return original !== undefined && Buffer.compare(bytes, original.bytes) === 0 ? 'same' : 'changed'
  } catch (error) {
    if (error instanceof WorkspaceError) return error.fault === 'missing' ? 'removed' : 'changed'
    throw error
  }
}

/** Returns the files of a template by path; none if it is no longer in the catalog. */
export async function loadTemplateFiles(
  catalog: TemplateCatalog,
  template: string | null,
): Promise<Map<string, TemplateFile>> {
  const isInCatalog = catalog.list().some(({ id }) => id === template)
  const files = isInCatalog && template !== null ? await catalog.files(template) : []
  return new Map([...files].map((file) => [file.path, file]))
}
