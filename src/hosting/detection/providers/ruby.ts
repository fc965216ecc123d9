import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import { type Candidate, type Provider, startCommand, startFiles } from '../candidate.ts'
import { type Gems, readGems, rubyTools } from '../ruby/gems.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion } from '../versions.ts'

/** Ruby: Rails, an app of Rack, a file that listens, or the pages of a generator. */
export const ruby: Provider = {
  name: 'ruby',
  marks: /^(?:Gemfile|gems\.rb|config\.ru|_config\.ya?ml)$/,
  async look(directory) {
    const gems = await readGems(directory)
    const site = await findSite(directory, gems)
    if (site !== null) return [site]
    const start = await findStart(directory, gems)
    if (gems === null && start === null) return []
    const list = gems?.file ?? 'Gemfile'
    const candidate: Candidate = {
      kind: start?.name == null ? 'Ruby' : `Ruby (${start.name})`,
      strength: start === null ? 'none' : 'proven',
      install: gems?.install ?? null,
      build: start?.build ?? null,
      start: start === null ? null : startCommand(start.command),
      obstacle: `There is a ${list}, but no config.ru, no Rails app, and no file that listens.`,
      variables: { RACK_ENV: 'production', APP_ENV: 'production', ...gems?.variables, ...start?.variables },
      secrets: start?.name === 'Rails' ? { SECRET_KEY_BASE: 'hex' } : {},
      tools: [
        ...(gems?.tools ?? (await rubyTools(directory))),
        ...(start?.program ? [anyVersion(start.program)] : []),
      ],
      evidence: [...(start?.evidence ?? []), ...(gems === null ? [] : [await directory.evidence(gems.file)])],
      runs: /(?:^|[\s/;&])(?:bundle|ruby|rails|rackup|puma|thin|unicorn|falcon|rake)\b/,
      warnings: start?.warnings ?? [],
    }
    return [candidate]
  },
}

/** How an app starts. */
interface Start {
  readonly name: string | null
  readonly command: string
  readonly build?: string
  /** The program that has to be on the machine, where no Gemfile brings it. */
  readonly program?: string
  readonly variables?: Readonly<Record<string, string>>
  readonly evidence: readonly Evidence[]
  readonly warnings?: readonly string[]
}

/** Servers of Rack by their gems, with what makes each one listen. */
const SERVERS: ReadonlyArray<readonly [gem: string, command: string]> = [
  ['puma', 'puma -b "tcp://$HOST:$PORT"'],
  ['falcon', 'falcon serve --bind "http://$HOST:$PORT"'],
  ['unicorn', 'unicorn -l "$HOST:$PORT"'],
  ['thin', 'thin start -a $HOST -p $PORT'],
  ['iodine', 'iodine -b $HOST -p $PORT'],
  ['webrick', 'rackup -s webrick -o $HOST -p $PORT'],
]

async function findStart(directory: SourceDirectory, gems: Gems | null): Promise<Start | null> {
  const isRails =
    directory.has('config/application.rb') && (gems === null || gems.has('rails') || gems.has('railties'))
  if (isRails) return rails(directory, gems)
  const listening = await findListening(directory)
  if (!directory.has('config.ru')) return listening && inBundle(listening, gems)
  const evidence = [await directory.evidence('config.ru', /^\s*run\b/)]
  const server = SERVERS.find(([gem]) => gems?.has(gem))
  if (server !== undefined) return inBundle({ name: 'Rack', command: server[1], evidence }, gems)
  // Its own file starts the server that it has.
  if (listening !== null && gems !== null && !gems.has('rackup')) return inBundle(listening, gems)
  const command = 'rackup -o $HOST -p $PORT'
  return gems === null
    ? { name: 'Rack', command: inShell(command), program: 'rackup', evidence }
    : { ...inBundle({ name: 'Rack', command, evidence }, gems), warnings: [NO_SERVER(gems.file)] }
}

const NO_SERVER = (file: string): string =>
  `${file} names no web server. If the app does not start, add one, as with gem "puma" and gem "rackup".`

/**
 * Runs a server below a shell that stays. One that writes a title over its variables, as Puma does, is found by its parent
 * alone.
 */
const inShell = (command: string): string => `${command} || exit $?`

/** Adds what calls a program of the Gemfile. */
const inBundle = (start: Start, gems: Gems | null): Start => ({
  ...start,
  command: inShell(`${gems === null ? '' : 'bundle exec '}${start.command}`),
})

/** Matches the code of a file that listens when it is run. */
const CLASSIC = /^\s*require\s*\(?\s*["']sinatra["']/
const LISTENS =
  /\bWEBrick::HTTPServer\.new|\bTCPServer\.(?:new|open)|\.run!\b|\bRack(?:up)?::(?:Handler|Server)\b|\bPuma::Server\.new/

async function findListening(directory: SourceDirectory): Promise<Start | null> {
  const files = directory.files.filter((path) => /^(?:(?:app|bin|lib|src)\/)?[^/]+\.rb$/.test(path))
  const usual = (path: string): number => (/^(?:app|server|main|web|index)\.rb$/.test(path) ? 0 : 1)
  for (const path of files.sort((a, b) => usual(a) - usual(b))) {
    const text = await directory.code(path)
    const isClassic = text.split('\n').some((line) => CLASSIC.test(line))
    if (!isClassic && !LISTENS.test(text)) continue
    return {
      name: isClassic ? 'Sinatra' : null,
      command: `ruby ${shellQuote([path])}${isClassic ? ' -p $PORT -o $HOST' : ''}`,
      evidence: [await directory.evidence(path, isClassic ? CLASSIC : LISTENS)],
    }
  }
  return null
}

async function rails(directory: SourceDirectory, gems: Gems | null): Promise<Start> {
  const has = (name: string): boolean => gems?.has(name) ?? false
  const server =
    SERVERS.find(([gem]) => has(gem))?.[1] ?? 'rails server -b $HOST -p $PORT -P "$TMPDIR/rails.pid"'
  const database = await directory.text('config/database.yml')
  const hasAssets =
    directory.hasDirectory('app/assets') ||
    ['sprockets-rails', 'propshaft', 'shakapacker', 'vite_rails'].some(has)
  const adapter = ['pg', 'mysql2', 'trilogy'].find(has)
  return {
    name: 'Rails',
    command: `${database === null ? '' : 'bundle exec rails db:prepare && '}${inShell(`bundle exec ${server}`)}`,
    // No secret is needed for it, and none may get into what it makes.
    ...(hasAssets ? { build: 'SECRET_KEY_BASE_DUMMY=1 bundle exec rails assets:precompile' } : {}),
    variables: { RAILS_ENV: 'production', RAILS_SERVE_STATIC_FILES: '1', RAILS_LOG_TO_STDOUT: '1' },
    evidence: [
      await directory.evidence('config/application.rb', /<\s*Rails::Application/),
      ...(database === null ? [] : [await directory.evidence('config/database.yml', /^production:/)]),
    ],
    warnings:
      database === null || adapter === undefined || has('sqlite3')
        ? []
        : [
            `The Gemfile has ${adapter}, and berth runs no database: set DATABASE_URL as a secret of the project, and allow its host with --server-hosts.`,
          ],
  }
}

/** A generator of pages. */
interface Generator {
  readonly name: string
  readonly gem: string
  /** Files that it reads; one of them has to be there. */
  readonly files: readonly string[]
  /** What builds the pages, with `RUN` where a program of gems is called, and `FILE` for the file. */
  readonly command: string
  readonly folder: string
}

const GENERATORS: readonly Generator[] = [
  // The addresses of pages are those of the root, wherever else they will be published.
  {
    name: 'Jekyll',
    gem: 'jekyll',
    files: ['_config.yml', '_config.yaml', '_config.toml'],
    command: `printf 'url: ""\\nbaseurl: ""\\n' > "$TMPDIR/root.yml" && RUN jekyll build --config FILE,"$TMPDIR/root.yml" --destination _site`,
    folder: '_site',
  },
  {
    name: 'Middleman',
    gem: 'middleman',
    files: ['config.rb'],
    command: 'RUN middleman build',
    folder: 'build',
  },
  {
    name: 'Nanoc',
    gem: 'nanoc',
    files: ['nanoc.yaml', 'config.yaml'],
    command: 'RUN nanoc compile',
    folder: 'output',
  },
  {
    name: 'Bridgetown',
    gem: 'bridgetown',
    files: ['bridgetown.config.yml', 'config/initializers.rb'],
    command: 'RUN bridgetown build',
    folder: 'output',
  },
]

/** Returns the app of a directory that a generator of Ruby makes pages of; null for none. */
async function findSite(directory: SourceDirectory, gems: Gems | null): Promise<Candidate | null> {
  for (const { name, gem, files, command, folder } of GENERATORS) {
    const file = directory.first(files)
    const isListed = gems !== null && (gems.has(gem) || (gem === 'jekyll' && gems.has('github-pages')))
    const isPlain = gem === 'jekyll' && !isListed && (await isJekyll(directory, file))
    if (file === null || !(isListed || isPlain)) continue
    return {
      kind: name,
      strength: 'pages',
      install: gems?.install ?? null,
      // Beside a Gemfile it runs with those gems alone, however it is called.
      build: command.replace('RUN ', gems === null ? '' : 'bundle exec ').replace('FILE', file),
      start: startFiles(folder, false),
      standsAlone: true,
      variables: { ...gems?.variables, JEKYLL_ENV: 'production', LANG: 'C.UTF-8' },
      tools: gems?.tools ?? [anyVersion('jekyll')],
      evidence: [
        await directory.evidence(file),
        ...(gems === null
          ? []
          : [await directory.evidence(gems.file, new RegExp(`["'](?:${gem}|github-pages)["']`))]),
      ],
    }
  }
  return null
}

/** Reports whether a directory without a list of gems is a site of Jekyll: one of its own directories is beside its settings. */
async function isJekyll(directory: SourceDirectory, file: string | null): Promise<boolean> {
  if (file === null || directory.has('package.json')) return false
  const settings = fieldsOf(await directory.tables(file))
  const isPage = directory.files.some((path) =>
    /^(?:_(?:posts|layouts|includes|pages)\/|(?:[^/]+\/)?index\.(?:md|html)$)/.test(path),
  )
  return isPage || 'theme' in settings || 'remote_theme' in settings
}
