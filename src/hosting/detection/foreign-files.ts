import { fieldsOf } from '../../runtime/is-object.ts'
import type { Evidence } from '../app-runtime/plan.ts'
import type { SourceDirectory } from './source.ts'

/** What files say that others' tools read, and berth does not run. */
export interface Foreign {
  readonly evidence: readonly Evidence[]
  /** One sentence for an app whose start nothing else says; null if these files say nothing of it. */
  readonly says: string | null
  /** A `berth.json` of what they say; null without a start. */
  readonly berthJson: Readonly<Record<string, unknown>> | null
  readonly warnings: readonly string[]
}

/** What one file says. */
interface Reading {
  /** Relative to the directory. */
  readonly file: string
  /** A clause about the file, after "There is FILE,": what berth does not do with it. */
  readonly but: string
  readonly start?: string | undefined
  readonly build?: string | undefined
  /** The directory of built files, for tools that publish one. */
  readonly publish?: string | undefined
  readonly port?: number | undefined
  /** Further clauses about what it has. */
  readonly has?: readonly string[]
  /** Matches the lines that say so. */
  readonly lines?: readonly RegExp[]
  /** Images and add-ons that it names. */
  readonly services?: readonly string[]
  readonly warnings?: readonly string[]
}

/** Reads a kind of file; null if the directory has none. */
type Reader = (directory: SourceDirectory) => Promise<Reading | null>

/** Most directories that are named of a file of several services. @bound reader */
const MAX_NAMED = 6

/** Databases and the like, by a word of their images and add-ons, with the port at which they usually listen. */
const DATABASES: ReadonlyArray<readonly [word: RegExp, name: string, port: number]> = [
  [/postg(?:res|is)|timescale|pgvector/, 'PostgreSQL', 5432],
  [/mysql|mariadb|cleardb|jawsdb/, 'MySQL', 3306],
  [/mongo/, 'MongoDB', 27_017],
  [/redis|valkey|keydb|dragonfly/, 'Redis', 6379],
  [/rabbitmq|cloudamqp/, 'RabbitMQ', 5672],
  [/elasticsearch|opensearch|bonsai/, 'Elasticsearch', 9200],
  [/memcache/, 'Memcached', 11_211],
  [/kafka|redpanda/, 'Kafka', 9092],
  [/minio/, 'MinIO', 9000],
]

/**
 * Reads the files of a directory that name a start, a build, a port or a database for others' tools. They are evidence and
 * a proposal; nothing of them is run.
 */
export async function readForeign(directory: SourceDirectory): Promise<Foreign> {
  const readings = (await Promise.all(READERS.map((read) => read(directory)))).filter(
    (reading) => reading !== null,
  )
  const evidence = await Promise.all(
    readings.flatMap(({ file, lines = [] }) =>
      (lines.length === 0 ? [null] : lines).map((line) => directory.evidence(file, line)),
    ),
  )
  const telling =
    readings.find(({ start, publish }) => start !== undefined || publish !== undefined) ?? readings[0] ?? null
  return {
    // A file that says nothing that was looked for is evidence by its existence once.
    evidence: evidence.filter(
      ({ file, line }, index) =>
        line !== null ||
        !evidence.some((other, at) => other.file === file && (other.line !== null || at < index)),
    ),
    says: telling === null ? null : sentenceOf(telling),
    berthJson: telling === null ? null : berthJsonOf(telling),
    warnings: [...databaseWarnings(readings), ...readings.flatMap(({ warnings = [] }) => warnings)],
  }
}

function sentenceOf({ file, but, start, build, publish, port, has = [] }: Reading): string {
  const clauses = [
    ...(build === undefined ? [] : [`its build is \`${build}\``]),
    ...(start === undefined ? [] : [`its command is \`${start}\``]),
    ...(publish === undefined ? [] : [`it publishes ${publish}`]),
    ...(port === undefined ? [] : [`its port is ${port}`]),
    ...has,
  ]
  return `There is ${file}, ${but}${clauses.length === 0 ? '' : `; ${clauses.join(', ')}`}.`
}

function berthJsonOf({ start, build, publish, port }: Reading): Record<string, unknown> | null {
  const built = build === undefined ? {} : { build }
  if (start === undefined) return publish === undefined ? null : { ...built, static: { folder: publish } }
  // A command that names the port listens there, whatever PORT says.
  return { ...built, start, ...(port !== undefined && start.includes(String(port)) ? { port } : {}) }
}

function databaseWarnings(readings: readonly Reading[]): string[] {
  return readings.flatMap(({ file, services = [] }) => {
    const named = DATABASES.filter(([word]) => services.some((service) => word.test(service)))
    if (named.length === 0) return []
    const names = named.map(([, name]) => name).join(', ')
    const ports = named.map(([, , port]) => port).join(',')
    return [
      `${file} names ${names}, which berth does not run: start it on this machine, let servers reach it by "berth serve --server-hosts ${ports}", and give the app its address as a secret.`,
    ]
  })
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined

const number = (value: unknown): number | undefined => {
  const port = Number(value)
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
}

/** Returns the command of a list of words or a text. */
const commandOf = (value: unknown): string | undefined =>
  Array.isArray(value) ? text(value.filter((one) => typeof one === 'string').join(' ')) : text(value)

/** Returns the lines that have the beginnings of these texts. */
const linesOf = (...values: readonly (string | undefined)[]): RegExp[] =>
  values.flatMap((value) =>
    value === undefined ? [] : [new RegExp(RegExp.escape(value.split('\n')[0]?.slice(0, 80) ?? ''))],
  )

/** Describes a platform's file of tables: where its fields are, and what berth does not do with it. */
const platform =
  (
    file: string,
    read: (fields: Record<string, unknown>) => Partial<Reading>,
    but = 'which berth does not run',
  ): Reader =>
  async (directory) => {
    const fields = await directory.tables(file)
    if (fields === null) return null
    const { lines = [], ...found } = read(fields)
    return { file, but, ...found, lines: [...linesOf(found.build, found.start, found.publish), ...lines] }
  }

const NO_CONTAINERS = 'but berth runs no containers'

const dockerfile: Reader = async (directory) => {
  const file = directory.first(['Dockerfile', 'Containerfile', 'dockerfile', 'docker/Dockerfile'])
  if (file === null) return null
  const code = (await directory.textOf(file)).replace(/\\\r?\n/g, ' ')
  // The last stage is the one that runs.
  const stage = code.slice(Math.max(0, code.search(/^\s*FROM\b(?![\s\S]*^\s*FROM\b)/im)))
  const wordsOf = (instruction: string): string | undefined => {
    const rest = [...stage.matchAll(new RegExp(`^\\s*${instruction}\\s+(.+)$`, 'gim'))].at(-1)?.[1]?.trim()
    try {
      return rest?.startsWith('[') ? commandOf(JSON.parse(rest)) : text(rest)
    } catch {
      return text(rest)
    }
  }
  const start = commandOf([wordsOf('ENTRYPOINT'), wordsOf('CMD')])
  const port = number(/^\s*EXPOSE\s+(\d+)/im.exec(stage)?.[1])
  return {
    ...{ file, but: NO_CONTAINERS, start, port },
    lines: [
      ...(start === undefined ? [] : [/^\s*(?:CMD|ENTRYPOINT)\b/i]),
      ...(port === undefined ? [] : [/^\s*EXPOSE\b/i]),
    ],
  }
}

const compose: Reader = async (directory) => {
  const file = directory.first(['compose.yaml', 'compose.yml', 'docker-compose.yml', 'docker-compose.yaml'])
  if (file === null) return null
  const services = Object.entries(fieldsOf((await directory.tables(file))?.services))
  const built: string[] = []
  const images: string[] = []
  const warnings: string[] = []
  for (const [name, service] of services) {
    const { build, image, env_file: files } = fieldsOf(service)
    const context = text(build) ?? text(fieldsOf(build).context)
    if (context !== undefined) built.push(`${name} (${context})`)
    else if (typeof image === 'string') images.push(image)
    for (const path of [files].flat().map((one) => text(one) ?? text(fieldsOf(one).path))) {
      if (path !== undefined && leadsOut(path))
        warnings.push(`${file} names ${path}, which lies outside of the source; it was not read.`)
    }
  }
  return {
    ...{ file, but: NO_CONTAINERS, services: images, warnings },
    has:
      built.length === 0
        ? []
        : [`it has ${built.slice(0, MAX_NAMED).join(', ')}: bring up one by --directory`],
    lines: services.length === 0 ? [] : [/^services\s*:/],
  }
}

/** Reports whether a path leads out of the directory that it is relative to. */
function leadsOut(path: string): boolean {
  let depth = 0
  for (const name of path.split('/')) {
    if (name === '..') depth -= 1
    else if (name !== '' && name !== '.') depth += 1
    if (depth < 0) return true
  }
  return path.startsWith('/') || path.startsWith('~')
}

/** Targets that run an app, likeliest first. */
const TARGETS = ['start', 'run', 'serve', 'server', 'up', 'dev']

/** Describes a tool of named targets. */
const targets =
  (files: readonly string[], tool: string, lineFor: (target: string) => RegExp): Reader =>
  async (directory) => {
    const file = directory.first(files)
    if (file === null) return null
    const code = await directory.textOf(file)
    const target = TARGETS.find((name) => new RegExp(lineFor(name), 'm').test(code))
    const but = 'whose targets berth does not run by itself'
    return target === undefined
      ? { file, but }
      : { file, but, start: `${tool} ${target}`, lines: [lineFor(target)] }
  }

const firstOf = (value: unknown): unknown => [value].flat()[0]

/** All readers: those whose files name a start most exactly come first. */
const READERS: readonly Reader[] = [
  ...['railway.json', 'railway.toml'].map((file) =>
    platform(file, ({ build, deploy }) => ({
      start: text(fieldsOf(deploy).startCommand),
      build: commandOf(fieldsOf(build).buildCommand),
    })),
  ),
  platform('railpack.json', ({ steps, deploy }) => ({
    start: text(fieldsOf(deploy).startCommand),
    build: commandOf([fieldsOf(fieldsOf(steps).build).commands].flat()),
  })),
  platform('nixpacks.toml', ({ phases, start }) => ({
    start: text(fieldsOf(start).cmd),
    build: text([fieldsOf(fieldsOf(phases).build).cmds].flat().filter(text).join(' && ')),
  })),
  platform('render.yaml', ({ services, databases }) => {
    const all = Array.isArray(services) ? services.map(fieldsOf) : []
    const web = all.find(({ type }) => type === 'web') ?? {}
    return {
      start: text(web.startCommand),
      build: text(web.buildCommand),
      publish: text(web.staticPublishPath),
      services: [
        ...(firstOf(databases) === undefined ? [] : ['postgres']),
        ...all.flatMap(({ type }) => text(type) ?? []),
      ],
    }
  }),
  platform('heroku.yml', ({ run }) => {
    const { web } = fieldsOf(run)
    return { start: commandOf(fieldsOf(web).command ?? web) }
  }),
  platform('fly.toml', ({ processes, http_service: http }) => {
    const port = number(fieldsOf(http).internal_port)
    return {
      start: text(fieldsOf(processes).app ?? fieldsOf(processes).web),
      port,
      lines: port === undefined ? [] : [/internal_port/],
    }
  }),
  platform('app.json', ({ addons }) => ({
    services: [addons].flat().flatMap((addon) => text(addon) ?? text(fieldsOf(addon).plan) ?? []),
  })),
  platform('netlify.toml', ({ build }) => ({
    build: text(fieldsOf(build).command),
    publish: text(fieldsOf(build).publish),
  })),
  platform('vercel.json', ({ buildCommand, outputDirectory }) => ({
    build: text(buildCommand),
    publish: text(outputDirectory),
  })),
  dockerfile,
  targets(['Makefile', 'makefile', 'GNUmakefile'], 'make', (target) => new RegExp(`^${target}\\s*:(?!=)`)),
  targets(
    ['justfile', 'Justfile', '.justfile'],
    'just',
    (target) => new RegExp(`^@?${target}(?:\\s[^:]*)?:(?!=)`),
  ),
  targets(['Taskfile.yml', 'Taskfile.yaml'], 'task', (target) => new RegExp(`^ {2}${target}\\s*:`)),
  compose,
  platform(
    '.devcontainer/devcontainer.json',
    ({ postStartCommand, postCreateCommand, forwardPorts }) => ({
      start: commandOf(postStartCommand),
      build: commandOf(postCreateCommand),
      port: number(firstOf(forwardPorts)),
    }),
    NO_CONTAINERS,
  ),
  async (directory) =>
    directory.has('flake.nix') ? { file: 'flake.nix', but: 'but berth does not use Nix' } : null,
]
