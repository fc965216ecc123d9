import { readdirSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join, normalize } from 'node:path'

/** A page of the guide. */
export interface GuidePage {
  /** Its file's name without `.md`, as in `berth guide NAME`. */
  readonly name: string
  /** Its first heading as plain text. */
  readonly title: string
  /** Its text, the first heading included. */
  readonly markdown: string
}

/** A part of a page: what stands below one of its headings. */
export interface GuidePart {
  /** The part's heading as plain text. Equals the page's title for its beginning. */
  readonly heading: string
  /** The heading's fragment in the page's URL; empty for the beginning. */
  readonly fragment: string
  readonly lines: readonly string[]
}

/** A line of the guide's index. */
interface IndexEntry {
  readonly name: string
  /** What a person wants to do who reads the page. */
  readonly purpose: string
}

/** A group of the guide's index. */
interface IndexGroup {
  readonly heading: string
  readonly entries: readonly IndexEntry[]
}

/** The page that lists all others. */
const INDEX = 'README'

/** In the source tree, or beside the executable's code inside it (see scripts/compile.ts). */
const root = import.meta.dir.startsWith('/$bunfs/')
  ? join(import.meta.dir, 'docs')
  : join(import.meta.dir, '../../../../docs')

/** Returns the names of all pages but the index, sorted. */
export const guideNames = (): string[] =>
  readdirSync(root)
    .filter((file) => file.endsWith('.md'))
    .map((file) => basename(file, '.md'))
    .filter((name) => name !== INDEX)
    .sort()

/** Returns all pages but the index, by name. */
export const guidePages = (): Promise<GuidePage[]> => Promise.all(guideNames().map(read))

/** Returns the page of this name; null if there is none. */
export const guidePage = async (name: string): Promise<GuidePage | null> =>
  guideNames().includes(name) ? read(name) : null

/** Returns the guide's index: what a person may want to do, in groups. */
export async function guideIndex(): Promise<IndexGroup[]> {
  const { markdown } = await read(INDEX)
  return markdown
    .split(/^## /m)
    .slice(1)
    .map((group) => ({
      heading: group.slice(0, group.indexOf('\n')),
      entries: [...group.matchAll(/^- \[([\w-]+)\.md\]\([\w-]+\.md\): (.+)$/gm)].map(
        ([, name = '', purpose = '']) => ({ name, purpose }),
      ),
    }))
}

/**
 * Reads a file that a page refers to, such as an example.
 *
 * @param path below the guide's directory
 * @returns its bytes, or the sorted names in a directory, where those of directories end with `/`; null if there is
 *   nothing
 */
export async function guideFile(path: string): Promise<Uint8Array | string[] | null> {
  const below = normalize(path)
  if (below.startsWith('..') || below.startsWith('/') || below.includes('\0')) return null
  const file = join(root, below)
  try {
    const entries = await readdir(file, { withFileTypes: true })
    return entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort()
  } catch {
    // No directory. Reading it as a file tells what it is.
  }
  return readFile(file).catch(() => null)
}

async function read(name: string): Promise<GuidePage> {
  const markdown = await readFile(join(root, `${name}.md`), 'utf8')
  return { name, title: plain(/^# (.+)$/m.exec(markdown)?.[1] ?? name), markdown }
}

/** Splits a page at its headings. Lines of code are no headings. */
export function partsOf(page: GuidePage): GuidePart[] {
  const parts = [{ heading: page.title, fragment: '', lines: [] as string[] }]
  const counts = new Map<string, number>()
  let isCode = false
  for (const line of page.markdown.split('\n').slice(1)) {
    if (line.startsWith('```')) isCode = !isCode
    const heading = isCode ? undefined : /^##+ (.+)$/.exec(line)?.[1]
    if (heading === undefined) parts.at(-1)?.lines.push(line)
    else parts.push({ heading: plain(heading), fragment: unique(fragmentOf(heading), counts), lines: [] })
  }
  return parts
}

/** Returns the fragment of a heading, as the renderer of pages and the hosts of repositories make it. */
const fragmentOf = (heading: string): string =>
  plain(heading)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s+/g, '-')

function unique(fragment: string, counts: Map<string, number>): string {
  const before = counts.get(fragment) ?? 0
  counts.set(fragment, before + 1)
  return before === 0 ? fragment : `${fragment}-${before}`
}

/** Removes the marks of code, of emphasis and of links from a line. */
export const plain = (line: string): string =>
  line.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '')
