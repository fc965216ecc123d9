import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import { type Candidate, type Provider, startFiles } from '../candidate.ts'
import type { Machine } from '../machine.ts'
import { installPython, readPythonPackages } from '../python/packages.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion } from '../versions.ts'

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
    const kind = 'static files'
    const staticfile = await directory.text('Staticfile')
    if (staticfile !== null) {
      const [, root = ''] = /^[ \t]*root:[ \t]*['"]?([^'"\s]+)/m.exec(staticfile) ?? []
      const fallback = /^[ \t]*pushstate:[ \t]*enabled/m.test(staticfile)
      const names = root.split('/').filter((name) => !['', '.', '..'].includes(name))
      const evidence = [await directory.evidence('Staticfile')]
      return [{ kind, strength: 'pages', start: startFiles(names.join('/'), fallback), evidence }]
    }
    const generated = await findGenerated(directory, machine)
    // Pages that a generator has made before are those of an earlier time.
    if (generated !== null) return [generated]
    for (const folder of DIRECTORIES) {
      const page = folder === '' ? 'index.html' : `${folder}/index.html`
      if (!directory.has(page)) continue
      const [fallback, ...evidence] = await fallbackOf(directory, folder)
      const candidate: Candidate = {
        kind,
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

/** What makes pages of the files of a directory. */
interface Site {
  readonly name: string
  /** Its settings. */
  readonly file: string
  readonly command: string
  /** The directory of pages that it makes. */
  readonly folder: string
  /** The program that it needs. */
  readonly tool?: string
  /** The packages of Python that bring its program. */
  readonly packages?: readonly string[]
  /** The list of packages, if it is not the directory's own. */
  readonly list?: string
  /** Why it cannot be made: one sentence. */
  readonly obstacle?: string
}

/** Matches the files of code, beside which pages are documentation. */
const CODE =
  /^(?:package\.json|pyproject\.toml|setup\.py|manage\.py|go\.mod|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|composer\.json|Gemfile|deno\.jsonc?)$/

/** Reports whether a directory has code that is more than what makes or adorns its pages. */
const isBesideCode = (directory: SourceDirectory): boolean =>
  directory.files.some(
    (path) =>
      CODE.test(path) ||
      /^(?:(?:src|app|api|server|cmd|lib)\/)?[^/]+\.(?:py|go|rb|php|rs|java|ts)$/.test(path),
  )

/** Returns the site that a generator makes of a directory; null if there is none. */
async function findGenerated(directory: SourceDirectory, machine: Machine): Promise<Candidate | null> {
  const site =
    (await hugo(directory)) ??
    (await zola(directory)) ??
    (await mdbook(directory)) ??
    (await mkdocs(directory)) ??
    pelican(directory) ??
    (await sphinx(directory))
  if (site === null) return null
  const { name, file, command, folder, tool = '' } = site
  const found = {
    kind: name,
    standsAlone: true,
    tools: [anyVersion(tool, directory.pathOf(file))],
    ...(site.packages && (await installGenerator(directory, site.packages, site.list, machine))),
    evidence: [await directory.evidence(file)],
  }
  if (site.obstacle !== undefined) return { ...found, strength: 'none', obstacle: site.obstacle }
  const isSettings = (path: string): boolean =>
    path === file || /^(?:pelican|publish)conf\.py$|^tasks\.py$/.test(path)
  const isBeside = directory.files.some((path) => CODE.test(path) && !isSettings(path))
  return {
    ...found,
    strength: isBeside ? 'weak' : 'pages',
    build: command,
    start: startFiles(folder, false),
  }
}

/** Returns what installs a generator of Python: the directory's list and what its settings name. */
async function installGenerator(
  directory: SourceDirectory,
  packages: readonly string[],
  list: string | undefined,
  machine: Machine,
): Promise<Pick<Candidate, 'install' | 'tools' | 'path'>> {
  const own = list === undefined ? await readPythonPackages(directory) : null
  const also = packages.filter((name) => !own?.has(name))
  const { install, tools } = await installPython(directory, own, also, machine)
  const listed =
    list === undefined ? '' : ` && .venv/bin/python -m pip install --no-input -r ${shellQuote([list])}`
  return { install: install === null ? null : `${install}${listed}`, tools, path: ['.venv/bin'] }
}

const HUGO_FILES = ['toml', 'yaml', 'yml', 'json'].flatMap((ending) => [
  `hugo.${ending}`,
  `config/_default/hugo.${ending}`,
])
const HUGO_EARLIER = ['toml', 'yaml', 'yml', 'json'].flatMap((ending) => [
  `config.${ending}`,
  `config/_default/config.${ending}`,
])

async function hugo(directory: SourceDirectory): Promise<Site | null> {
  const own = directory.first(HUGO_FILES)
  const isHugo =
    ['content', 'layouts', 'themes', 'archetypes'].some((name) => directory.hasDirectory(name)) &&
    !directory.hasDirectory('templates')
  const file = own ?? (isHugo ? directory.first(HUGO_EARLIER) : null)
  const settings = file === null ? null : fieldsOf(await directory.tables(file))
  if (file === null || settings === null) return null
  // Another program's config.yaml beside a directory `content` has none of these.
  const isIts = ['baseURL', 'baseurl', 'title', 'theme', 'languageCode'].some((key) => key in settings)
  if (own === null && !isIts) return null
  const folder = typeof settings.themesDir === 'string' ? settings.themesDir : 'themes'
  const missing = [settings.theme]
    .flat()
    .filter((theme) => typeof theme === 'string' && !theme.includes('.'))
    .find((theme) => !directory.files.some((path) => path.startsWith(`${folder}/${theme}/`)))
  const isModule = (await directory.textOf('.gitmodules')).includes(`${folder}/${missing}`)
  const remedy = isModule
    ? ': it is a git submodule that was not fetched. Run "git submodule update --init" before you send the directory'
    : ''
  return {
    ...{ name: 'Hugo', file, folder: 'public', tool: 'hugo' },
    // Addresses of pages begin at the root, wherever else they will be published.
    command: 'hugo --minify --baseURL / --destination public',
    ...(missing !== undefined && {
      obstacle: `${file} names the theme ${missing}, and ${folder}/${missing} has no files${remedy}.`,
    }),
  }
}

async function zola(directory: SourceDirectory): Promise<Site | null> {
  const file = directory.first(['zola.toml', 'config.toml'])
  if (file === null || !directory.hasDirectory('content')) return null
  if (!('base_url' in fieldsOf(await directory.tables(file)))) return null
  const command = 'zola build --base-url / --output-dir public --force'
  return { name: 'Zola', file, command, folder: 'public', tool: 'zola' }
}

async function mdbook(directory: SourceDirectory): Promise<Site | null> {
  const file = 'book.toml'
  if (!directory.has(file)) return null
  const { build, output } = fieldsOf(await directory.tables(file))
  const { 'build-dir': stated } = fieldsOf(build)
  const book = typeof stated === 'string' ? stated : 'book'
  const folder = Object.keys(fieldsOf(output)).length > 1 ? `${book}/html` : book
  return { name: 'mdBook', file, command: 'mdbook build', folder, tool: 'mdbook' }
}

/** Usual lists of the packages of documentation. */
const LISTS = [
  'docs/requirements.txt',
  'doc/requirements.txt',
  'requirements-docs.txt',
  'requirements/docs.txt',
]

/** Packages of plug-ins and extensions of MkDocs that its settings name otherwise. */
const MKDOCS_PACKAGES: ReadonlyArray<readonly [text: RegExp, name: string]> = [
  [/^\s*(?:theme:\s*|name:\s*["']?)material\b|\bmaterial\./m, 'mkdocs-material'],
  [/\bpymdownx\./, 'pymdown-extensions'],
  [/^\s*-\s*mkdocstrings\b/m, 'mkdocstrings[python]'],
]

/** The packages of usual plug-ins of MkDocs. */
const PLUGINS: Readonly<Record<string, string>> = {
  'awesome-pages': 'mkdocs-awesome-pages-plugin',
  'git-revision-date-localized': 'mkdocs-git-revision-date-localized-plugin',
  'literate-nav': 'mkdocs-literate-nav',
  'section-index': 'mkdocs-section-index',
  'gen-files': 'mkdocs-gen-files',
  exclude: 'mkdocs-exclude',
  glightbox: 'mkdocs-glightbox',
  macros: 'mkdocs-macros-plugin',
  mermaid2: 'mkdocs-mermaid2-plugin',
  minify: 'mkdocs-minify-plugin',
  redirects: 'mkdocs-redirects',
}

async function mkdocs(directory: SourceDirectory): Promise<Site | null> {
  const file = directory.first(['mkdocs.yml', 'mkdocs.yaml'])
  if (file === null) return null
  const text = await directory.textOf(file)
  const list = directory.first(LISTS)
  const block = /^plugins:[ \t]*\n((?:[ \t-].*\n?|[ \t]*\n)*)/m.exec(text)?.[1] ?? ''
  const plugins = [...block.matchAll(/^ {0,4}- *["']?([\w-]+)["']?:?[ \t]*$/gm)].map(([, name = '']) => name)
  const unlisted = list === null ? plugins.flatMap((name) => PLUGINS[name] ?? []) : []
  return {
    name: 'MkDocs',
    file,
    command: 'mkdocs build --site-dir site',
    folder: 'site',
    packages: [
      'mkdocs<2',
      ...MKDOCS_PACKAGES.filter(([said]) => said.test(text)).map(([, name]) => name),
      ...unlisted,
    ],
    ...(list === null ? {} : { list }),
  }
}

function pelican(directory: SourceDirectory): Site | null {
  if (!directory.has('pelicanconf.py')) return null
  const content = directory.hasDirectory('content') ? 'content' : '.'
  return {
    name: 'Pelican',
    file: 'pelicanconf.py',
    command: `pelican ${content} --settings pelicanconf.py --output output --relative-urls`,
    folder: 'output',
    packages: ['pelican[markdown]'],
  }
}

async function sphinx(directory: SourceDirectory): Promise<Site | null> {
  for (const folder of ['docs', 'doc', 'docs/source', 'doc/source', 'source', '']) {
    const file = [folder, 'conf.py'].filter(Boolean).join('/')
    const text = await directory.textOf(file)
    if (!/^(?:extensions|html_theme|master_doc|project)\s*=/m.test(text)) continue
    const theme = /^html_theme\s*=\s*["'](\w+)["']/m.exec(text)?.[1]
    const packages =
      theme === undefined || theme === 'alabaster' || !(theme in THEMES) ? [] : [THEMES[theme] ?? theme]
    const list = directory.first([`${folder}/requirements.txt`, ...LISTS])
    return {
      name: 'Sphinx',
      file,
      command: `python -m sphinx -b html ${shellQuote([folder || '.'])} _build/html`,
      folder: '_build/html',
      packages: ['sphinx', ...packages, ...(/["']myst_parser["']/.test(text) ? ['myst-parser'] : [])],
      ...(list === null ? {} : { list }),
    }
  }
  return null
}

/** The packages of themes of Sphinx. */
const THEMES: Readonly<Record<string, string>> = {
  sphinx_rtd_theme: 'sphinx-rtd-theme',
  furo: 'furo',
  pydata_sphinx_theme: 'pydata-sphinx-theme',
  sphinx_book_theme: 'sphinx-book-theme',
  piccolo_theme: 'piccolo-theme',
}
