import { type Candidate, type Provider, startFiles } from '../candidate.ts'
import type { SourceDirectory } from '../source.ts'
import { findGenerated, isBesideCode } from '../static/generators.ts'

/** Usual directories of built pages. */
const BUILT = ['dist', 'build', 'out', '_site']

/** Usual directories of pages; built files precede their sources, and the directory itself its documentation. */
const DIRECTORIES = [...BUILT, 'public', '', 'site', 'www', 'html', 'htdocs', 'docs']

/** Static files: the pages of a generator, a Staticfile, or an index page. */
export const staticFiles: Provider = {
  name: 'static',
  marks:
    /^(?:Staticfile|index\.html|(?:hugo|config)\.(?:toml|ya?ml|json)|zola\.toml|book\.toml|mkdocs\.ya?ml|pelicanconf\.py|conf\.py)$/,
  async look(directory, machine) {
    const found = { kind: 'static files', install: null, build: null, tools: [] }
    const staticfile = await directory.text('Staticfile')
    if (staticfile !== null) {
      const [, root = ''] = /^[ \t]*root:[ \t]*['"]?([^'"\s]+)/m.exec(staticfile) ?? []
      const fallback = /^[ \t]*pushstate:[ \t]*enabled/m.test(staticfile)
      const names = root.split('/').filter((name) => !['', '.', '..'].includes(name))
      const evidence = [await directory.evidence('Staticfile')]
      return [{ ...found, strength: 'pages', start: startFiles(names.join('/'), fallback), evidence }]
    }
    const generated = await findGenerated(directory, machine)
    // Pages that a generator has made before are those of an earlier time.
    if (generated !== null) return [generated]
    for (const folder of DIRECTORIES) {
      const page = folder === '' ? 'index.html' : `${folder}/index.html`
      if (!directory.has(page)) continue
      const [fallback, ...evidence] = await fallbackOf(directory, folder)
      const candidate: Candidate = {
        ...found,
        strength: directory.path === '' && !isBesideCode(directory) ? 'pages' : 'weak',
        start: startFiles(folder, fallback),
        isBuilt: BUILT.includes(folder),
        evidence: [await directory.evidence(page), ...evidence],
      }
      return [candidate]
    }
    return []
  },
}

/** Matches a rule of other hosts that gives every path to the index page. */
const REWRITES: ReadonlyArray<readonly [file: string, rule: RegExp]> = [
  ['_redirects', /^\s*\/\*\s+\/(?:index\.html)?\s+200\b/],
  ['netlify.toml', /^\s*to\s*=\s*["']\/index\.html["']/],
  ['vercel.json', /"destination"\s*:\s*"\/(?:index\.html)?"/],
  ['firebase.json', /"destination"\s*:\s*"\/index\.html"/],
]

/** Returns whether one page answers all paths, and where a file says so. */
async function fallbackOf(
  directory: SourceDirectory,
  folder: string,
): Promise<[boolean, ...Candidate['evidence'][number][]]> {
  for (const [file, rule] of REWRITES) {
    const path = directory.first([folder === '' ? file : `${folder}/${file}`, file])
    if (path === null) continue
    const found = await directory.evidence(path, rule)
    if (found.line !== null) return [true, found]
  }
  return [false]
}
