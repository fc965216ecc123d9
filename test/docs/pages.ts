import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The repository. */
export const ROOT = join(import.meta.dir, '../..')

/** A page of the documentation. */
export interface Page {
  /** Its path in the repository, such as `docs/api.md`. */
  path: string
  text: string
}

/** The README and every page of `docs/`. */
export const PAGES: readonly Page[] = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${name}`),
].map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

/** Returns a page by its path. */
export function page(path: string): Page {
  const found = PAGES.find((one) => one.path === path)
  if (!found) throw new Error(`There is no page ${path}.`)
  return found
}

/** Returns the lines of a page's code blocks, fenced and indented. */
export function codeLines({ text }: Page): string[] {
  let fenced = false
  let previous = ''
  const lines: string[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) fenced = !fenced
    else if (fenced || (line.startsWith('    ') && !previous.startsWith('- '))) lines.push(line.trim())
    if (line.trim() !== '' && !line.startsWith('  ')) previous = line
  }
  return lines
}

/** Returns the texts in backticks outside of code blocks. */
export function inlineCode({ text }: Page): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '')
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replace(/\s+/g, ' '))
}
