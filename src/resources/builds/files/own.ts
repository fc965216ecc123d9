import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'
import type { TemplateCatalog } from '../../templates/catalog.ts'
import type { TemplateFile } from '../../templates/files.ts'
import type { BuildRow } from '../table.ts'
import type { Snapshot } from './snapshot.ts'

/** What is left in a workspace of templates that earlier builds copied. */
export interface OwnFiles {
  /** The template that was copied last. */
  readonly template: string
  /** Path → template: files that are still what was copied. */
  readonly files: ReadonlyMap<string, string>
  /** How one can tell that somebody has worked on the app since, for a person; null where nobody has. */
  readonly touched: string | null
}

/** Where tools keep what is theirs: the workspace is the home folder of what runs there. */
const HIDDEN_FOLDER = /^\.[^/]+\//

/** Where to look. */
interface Look {
  workspace: Workspace
  snapshot: Snapshot
  catalog: TemplateCatalog
  /** Builds of the server that copied a template, newest first. */
  builds: readonly BuildRow[]
  /** Whether a path is one of berth's own plans. */
  isPlan: (path: string) => Promise<boolean>
}

/** Finds out which files of a workspace are templates' and nobody's else, or null where no build copied one. */
export async function findOwnFiles(look: Look): Promise<OwnFiles | null> {
  const [last] = look.builds
  if (last?.template == null) return null
  const files = new Map<string, string>()
  let touched: string | null = null
  for (const { template, scaffold, steps } of look.builds) {
    const originals = await filesOf(look.catalog, template)
    // One that was cut short while it copied may have left files out.
    const isWhole = steps.find(({ key }) => key === 'scaffold')?.status === 'done'
    for (const path of scaffold) {
      if (files.has(path) || template === null) continue
      const state = await compareFile(look, path, originals.get(path))
      if (state === 'same') files.set(path, template)
      else if (scaffold === last.scaffold && (state === 'changed' || isWhole)) {
        touched ??= `${path} was ${state}`
      }
    }
  }
  return { template: last.template, files, touched: touched ?? (await findAddition(look, last, files)) }
}

/** A file that came after the template and is not one that an app of a template makes by itself. */
async function findAddition(
  { snapshot, catalog, builds, isPlan }: Look,
  { template }: BuildRow,
  own: ReadonlyMap<string, string>,
): Promise<string | null> {
  const copiedAt = [...own]
    .filter(([, of]) => of === template)
    .map(([path]) => snapshot.get(path)?.changedAt ?? Number.POSITIVE_INFINITY)
  const since = Math.min(...copiedAt)
  const isGenerated = await generated(catalog, new Set(builds.map((build) => build.template)))
  for (const [path, { changedAt }] of snapshot) {
    if (own.has(path) || changedAt < since || HIDDEN_FOLDER.test(path) || isGenerated(path)) continue
    if (!(await isPlan(path))) return `${path} was added`
  }
  return null
}

/** Whether git would ignore a file in an app of one of these templates: an earlier one may have left its data. */
async function generated(
  catalog: TemplateCatalog,
  templates: ReadonlySet<string | null>,
): Promise<(path: string) => boolean> {
  const { default: ignore } = await import('ignore')
  const rules = await Promise.all(
    [...templates].map(async (template) => {
      const bytes = (await filesOf(catalog, template)).get('.gitignore')?.bytes
      return ignore().add(bytes === undefined ? '' : new TextDecoder().decode(bytes))
    }),
  )
  return (path) => rules.some((one) => one.ignores(path))
}

/** What a file is beside its original. */
export async function compareFile(
  { workspace }: Pick<Look, 'workspace'>,
  path: string,
  original: TemplateFile | undefined,
): Promise<'same' | 'changed' | 'removed'> {
  try {
    const bytes = await workspace.read(path)
    return original !== undefined && Buffer.compare(bytes, original.bytes) === 0 ? 'same' : 'changed'
  } catch (error) {
    if (error instanceof WorkspaceError) return error.fault === 'missing' ? 'removed' : 'changed'
    throw error
  }
}

/** The files of a template by their paths; none where it is not in the catalog any more. */
export async function filesOf(
  catalog: TemplateCatalog,
  template: string | null,
): Promise<Map<string, TemplateFile>> {
  const isThere = catalog.list().some(({ id }) => id === template)
  const files = isThere && template !== null ? await catalog.files(template) : []
  return new Map([...files].map((file) => [file.path, file]))
}
