import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { codeLines, inlineCode, PAGES, type Page, page, ROOT } from './pages.ts'

test('the README has at most 200 lines', () => {
  expect(page('README.md').text.trimEnd().split('\n').length).toBeLessThanOrEqual(200)
})

test('every page is in the index, and the README leads to the index', () => {
  const index = page('docs/README.md')
  const linked = linksOf(index).map(({ target }) => target)
  const pages = PAGES.map(({ path }) => path).filter((path) => path !== 'README.md' && path !== index.path)
  expect(pages.filter((path) => !linked.includes(path))).toEqual([])
  expect(linksOf(page('README.md')).map(({ target }) => target)).toContain(index.path)
})

test('every link leads to a file, and its anchor to a heading', () => {
  const broken = PAGES.flatMap((from) =>
    linksOf(from)
      .filter(({ target, anchor }) => !leadsSomewhere(target, anchor))
      .map(({ target, anchor }) => `${from.path}: ${target}${anchor ? `#${anchor}` : ''}`),
  )
  expect(broken).toEqual([])
})

test('every path of the repository that a page names exists', () => {
  const missing = PAGES.flatMap(({ path, ...rest }) =>
    [...codeLines({ path, ...rest }), ...inlineCode({ path, ...rest })]
      .flatMap((code) => code.match(REPOSITORY_PATH) ?? [])
      .map((found) => found.replace(/[.,:]$/, ''))
      .filter((found) => !exists(found))
      .map((found) => `${path}: ${found}`),
  )
  expect(missing).toEqual([])
})

/** Words that a message or an example has the guide searched for. */
const GUIDE_WORDS: ReadonlySet<string> = new Set(['idempotency'])

test('every page that the source or a message of berth names exists', () => {
  const files = [...new Bun.Glob('src/**/*.ts').scanSync({ cwd: ROOT })]
  const named = files.flatMap((path) =>
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(/\b(?:docs\/([\w-]+)\.md|berth guide ([a-z-]+))/g)]
      .map(([, file, topic]) => file ?? topic)
      .filter((name) => !GUIDE_WORDS.has(name ?? ''))
      .map((name) => `docs/${name}.md`),
  )
  expect(named).toContain('docs/fixtures.md')
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('every file that the table for contributors names is where it says', () => {
  let base = ''
  const missing: string[] = []
  for (const row of page('docs/contributing.md')
    .text.split('\n')
    .filter((line) => line.startsWith('| '))) {
    const [, heading] = /^\| \*\*`?([^`*]+)`?\*\* \|/.exec(row) ?? []
    if (heading !== undefined) base = heading
    const named = heading === undefined ? [...row.matchAll(/`([\w/.-]+(?:\.ts|\/))`/g)] : []
    let dir = base
    for (const [, path = ''] of named) {
      const whole = existsSync(join(ROOT, path)) ? path : join(dir, path)
      // A directory that is named in full holds the files named behind it.
      if (whole === path && path.endsWith('/')) dir = path
      if (!existsSync(join(ROOT, whole))) missing.push(whole)
    }
  }
  expect(base).toBe('elsewhere')
  expect(missing).toEqual([])
})

/** A path that begins in a directory of the repository; `<noun>` stands for any name. */
const REPOSITORY_PATH = /(?<![\w./~@-])(?:src|docs|test|scripts|fixtures|\.ci)\/(?![\s'"`*])[\w./<>@-]+/g

/** Whether a path exists; one with `<…>` does if anything fits. */
function exists(path: string): boolean {
  if (!path.includes('<')) return existsSync(join(ROOT, path))
  const pattern = `${path.replace(/<[^>]*>/g, '*').replace(/\/$/, '')}${path.endsWith('/') ? '/*' : ''}`
  return !new Bun.Glob(pattern).scanSync({ cwd: ROOT, dot: true }).next().done
}

interface Link {
  /** The path of the file in the repository. */
  target: string
  anchor: string | undefined
}

/** Returns the links of a page that stay in the repository. */
function linksOf({ path, text }: Page): Link[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [file = '', anchor] = link.split('#')
      return { target: file === '' ? path : normalize(join(dirname(path), file)), anchor }
    })
}

function leadsSomewhere(target: string, anchor: string | undefined): boolean {
  if (!existsSync(join(ROOT, target))) return false
  if (anchor === undefined) return true
  return PAGES.some((one) => one.path === target && anchorsOf(one).includes(anchor))
}

/** Returns the anchors of a page's headings, as GitHub makes them. */
function anchorsOf({ text }: Page): string[] {
  return [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
