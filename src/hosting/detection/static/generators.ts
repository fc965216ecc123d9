import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import { parseToml } from '../../../runtime/toml.ts'
import { type Candidate, startFiles } from '../candidate.ts'
import type { Machine } from '../machine.ts'
import { NO_LIST, readPythonPackages } from '../python/packages.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, chooseTools, type ToolNeed } from '../versions.ts'

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
  readonly obstacle?: string | null
}

/** Matches the files of code, beside which pages are documentation. */
const CODE =
  /^(?:package\.json|pyproject\.toml|setup\.py|manage\.py|go\.mod|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|composer\.json|Gemfile|deno\.jsonc?)$/

/** Reports whether a directory has code that is more than what makes or adorns its pages. */
export const isBesideCode = (directory: SourceDirectory): boolean =>
  directory.files.some(
    (path) =>
      CODE.test(path) ||
      /^(?:(?:src|app|api|server|cmd|lib)\/)?[^/]+\.(?:py|go|rb|php|rs|java|ts)$/.test(path),
  )

/** Returns the site that a generator makes of a directory; null if there is none. */
export async function findGenerated(directory: SourceDirectory, machine: Machine): Promise<Candidate | null> {
  const site =
    (await hugo(directory)) ??
    (await zola(directory)) ??
    (await mdbook(directory)) ??
    (await mkdocs(directory)) ??
    pelican(directory) ??
    (await sphinx(directory))
  if (site === null) return null
  const { name, file, command, folder, tool, obstacle = null } = site
  const python = site.packages === undefined ? null : await fromPython(directory, site, machine)
  const isSettings = (path: string): boolean =>
    path === file || /^(?:pelican|publish)conf\.py$|^tasks\.py$/.test(path)
  const isBeside = directory.files.some((path) => CODE.test(path) && !isSettings(path))
  return {
    kind: name,
    strength: obstacle !== null ? 'none' : isBeside ? 'weak' : 'pages',
    install: python?.install ?? null,
    build: obstacle === null ? command : null,
    start: obstacle === null ? startFiles(folder, false) : null,
    ...(obstacle === null ? {} : { obstacle }),
    ...(python === null ? {} : { path: ['.venv/bin'] }),
    standsAlone: true,
    tools: python?.tools ?? [
      { ...anyVersion(tool ?? ''), wantedBy: [directory.path, file].filter(Boolean).join('/') },
    ],
    evidence: [await directory.evidence(file)],
  }
}

/** Returns what installs a generator of Python: the directory's list and what its settings name. */
async function fromPython(
  directory: SourceDirectory,
  { packages = [], list }: Site,
  machine: Machine,
): Promise<{ install: string | null; tools: readonly ToolNeed[] }> {
  const own = list === undefined ? await readPythonPackages(directory) : null
  const tools = own?.tools ?? [anyVersion('python')]
  const { programs, tools: found } = await chooseTools(tools, machine)
  const python = {
    program: programs.get('python') ?? 'python3',
    version: found.find(({ name }) => name === 'python')?.found ?? '3',
  }
  const also = packages.filter((name) => !own?.has(name))
  const install = (own ?? NO_LIST).install(python, also)
  const listed =
    list === undefined ? '' : ` && .venv/bin/python -m pip install --no-input -r ${shellQuote([list])}`
  return { install: install === null ? null : `${install}${listed}`, tools }
}

async function settings(directory: SourceDirectory, file: string): Promise<Record<string, unknown>> {
  const text = (await directory.text(file)) ?? ''
  try {
    if (file.endsWith('.toml')) return parseToml(text)
    if (file.endsWith('.json')) return fieldsOf(JSON.parse(text))
    return fieldsOf(Bun.YAML.parse(text))
  } catch {
    // The generator reports the mistake. YAML of MkDocs may have tags of Python.
    return {}
  }
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
  const earlier = directory.first(HUGO_EARLIER)
  const isHugo = ['content', 'layouts', 'themes', 'archetypes'].some((name) => directory.hasDirectory(name))
  const file =
    directory.first(HUGO_FILES) ?? (isHugo && !directory.hasDirectory('templates') ? earlier : null)
  if (file === null) return null
  const found = await settings(directory, file)
  // Another program's config.yaml beside a directory `content` has none of these.
  if (
    file === earlier &&
    !['baseURL', 'baseurl', 'title', 'theme', 'languageCode'].some((key) => key in found)
  )
    return null
  const themes = [found.theme].flat().filter((theme) => typeof theme === 'string')
  const folder = typeof found.themesDir === 'string' ? found.themesDir : 'themes'
  const missing = themes.find(
    (theme) =>
      !theme.includes('.') && !directory.files.some((path) => path.startsWith(`${folder}/${theme}/`)),
  )
  const modules = ((await directory.text('.gitmodules')) ?? '').includes(`${folder}/${missing}`)
  return {
    name: 'Hugo',
    file,
    // Addresses of pages begin at the root, wherever else they will be published.
    command: 'hugo --minify --baseURL / --destination public',
    folder: 'public',
    tool: 'hugo',
    obstacle:
      missing === undefined
        ? null
        : `${file} names the theme ${missing}, and ${folder}/${missing} has no files${modules ? ': it is a git submodule that was not fetched. Run "git submodule update --init" before you send the directory' : ''}.`,
  }
}

async function zola(directory: SourceDirectory): Promise<Site | null> {
  const file = directory.first(['zola.toml', 'config.toml'])
  if (file === null || !directory.hasDirectory('content')) return null
  if (!('base_url' in (await settings(directory, file)))) return null
  return {
    name: 'Zola',
    file,
    command: 'zola build --base-url / --output-dir public --force',
    folder: 'public',
    tool: 'zola',
  }
}

async function mdbook(directory: SourceDirectory): Promise<Site | null> {
  const found = directory.has('book.toml') ? await settings(directory, 'book.toml') : null
  if (found === null) return null
  const folder = fieldsOf(found.build)['build-dir']
  const many = Object.keys(fieldsOf(found.output)).length > 1
  const book = typeof folder === 'string' ? folder : 'book'
  return {
    name: 'mdBook',
    file: 'book.toml',
    command: 'mdbook build',
    folder: many ? `${book}/html` : book,
    tool: 'mdbook',
  }
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
  const text = (await directory.text(file)) ?? ''
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
  const folders = ['docs', 'doc', 'docs/source', 'doc/source', 'source', '']
  for (const folder of folders) {
    const file = [folder, 'conf.py'].filter(Boolean).join('/')
    const text = directory.has(file) ? ((await directory.text(file)) ?? '') : ''
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
