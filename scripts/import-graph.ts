import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** One import of a file of `src` by another. */
export interface Import {
  /** The importing file, relative to `src`. */
  readonly from: string
  /** The imported file, relative to `src`. */
  readonly to: string
  /** Whether only types are imported: types are erased, so nothing is loaded. */
  readonly typeOnly: boolean
  /** Whether it is `import()`, which loads on first use. */
  readonly lazy: boolean
}

/** The directory of `src` with the apps that projects start from: programs of their own, which berth copies and never loads. */
export const TEMPLATE_APPS = 'resources/templates/apps/'

/** The directory of `src` with the clients of other languages and of TypeScript: packages of their own. */
export const CLIENTS = 'clients/'

/**
 * Lists the TypeScript files of `src`, without declaration files, template apps and clients.
 *
 * @param src absolute path of the directory
 * @returns paths relative to `src`, sorted
 */
export function sourceFiles(src: string): string[] {
  return readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter(
      (path) =>
        /\.tsx?$/.test(path) &&
        !path.endsWith('.d.ts') &&
        ![TEMPLATE_APPS, CLIENTS].some((apart) => path.startsWith(apart)),
    )
    .sort()
}

/**
 * Reads every relative import of the files: static ones, re-exports, `import()` and `import('…').Type`.
 *
 * @param src absolute path of the directory
 * @param files paths relative to `src`
 */
export function importsOf(src: string, files: readonly string[]): Import[] {
  return files.flatMap((from) => {
    const text = readFileSync(join(src, from), 'utf8')
    const to = (path: string): string => relative(src, resolve(join(src, dirname(from)), path))
    const fixed = [...text.matchAll(/^(?:import|export)\s+(type\s)?([^'"]*?)from\s+'(\.[^']+)'/gm)]
    const lazy = [...text.matchAll(/(typeof\s+)?\bimport\('(\.[^']+)'\)(\.\w+)?/g)]
    return [
      ...fixed.map(([, type, names = '', path = '']) => ({
        from,
        to: to(path),
        typeOnly: type !== undefined || importsOnlyTypes(names),
        lazy: false,
      })),
      ...lazy.map(([, type, path = '', member]) => ({
        from,
        to: to(path),
        typeOnly: type !== undefined || (member !== undefined && member !== '.then'),
        lazy: true,
      })),
    ]
  })
}

/** Whether every name in the braces of an import is marked `type`. */
function importsOnlyTypes(names: string): boolean {
  const [, inside] = /^\{([^}]*)\}\s*$/.exec(names.trim()) ?? []
  if (inside === undefined) return false
  const each = inside.split(',').filter((name) => name.trim() !== '')
  return each.length > 0 && each.every((name) => name.trim().startsWith('type '))
}

/**
 * Finds the groups of files that import each other in a circle: Tarjan's strongly connected components.
 *
 * @param imports the edges that count
 * @returns each circle's files, sorted; empty if there is none
 */
export function circles(imports: readonly Import[]): string[][] {
  const next = new Map<string, Set<string>>()
  for (const { from, to } of imports) next.set(from, (next.get(from) ?? new Set()).add(to))
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (file: string): void => {
    index.set(file, index.size)
    low.set(file, index.get(file) ?? 0)
    stack.push(file)
    for (const to of next.get(file) ?? []) {
      if (!index.has(to)) visit(to)
      if (stack.includes(to)) low.set(file, Math.min(low.get(file) ?? 0, low.get(to) ?? 0))
    }
    if (low.get(file) !== index.get(file)) return
    const circle = stack.splice(stack.indexOf(file)).sort()
    if (circle.length > 1) found.push(circle)
  }
  for (const file of next.keys()) if (!index.has(file)) visit(file)
  return found
}
