import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ClientLanguage, execute, Missing, once } from './language.ts'

/** What generates the low level. It needs Go 1.25; the module itself needs less, as its go.mod says. */
const GENERATOR = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'

/** How the low level is generated, as oapi-codegen reads it. */
const CONFIGURATION = {
  package: 'api',
  generate: { models: true, client: true },
  'output-options': { 'skip-prune': true, 'name-normalizer': 'ToCamelCaseWithInitialisms' },
  compatibility: { 'always-prefix-enum-values': true },
}

/** The Go client: the directory of the module's release, and the same as a file GOPROXY. */
export const go: ClientLanguage = {
  name: 'go',
  title: 'Go',
  outputs: ['go', 'go-proxy'],

  async generate({ document, source, cache }) {
    await install(cache)
    const readable = join(cache, 'openapi.json')
    writeFileSync(readable, JSON.stringify(forGenerator(JSON.parse(readFileSync(document, 'utf8')))))
    const configuration = join(cache, 'oapi-codegen.json')
    mkdirSync(join(source, 'api'), { recursive: true })
    const output = join(source, 'api/api.gen.go')
    writeFileSync(configuration, JSON.stringify({ ...CONFIGURATION, output }))
    await execute([join(cache, 'bin/oapi-codegen'), '-config', configuration, readable], { cwd: cache })
  },

  async build({ source, output, cache, version }) {
    writeFileSync(
      join(source, 'version.go'),
      readFileSync(join(source, 'version.go'), 'utf8').replace('"0.0.0"', `"${version}"`),
    )
    const unformatted = await execute(['gofmt', '-l', '.'], { cwd: source })
    if (unformatted) throw new Error(`gofmt would change ${unformatted}`)
    await execute(['go', 'mod', 'tidy', '-diff'], { cwd: source, env: ENVIRONMENT }).catch((error: Error) => {
      if (/^[-+]/m.test(error.message)) throw error
      throw new Missing(`what it needs cannot be fetched: ${error.message}`)
    })
    await execute(['go', 'vet', './...'], { cwd: source, env: ENVIRONMENT })
    cpSync(source, join(output, 'go'), { recursive: true })
    await publish(source, join(output, 'go-proxy'), cache, version)
  },
}

/** What go gets: no other version of itself, and no state of a repository in what it builds. */
const ENVIRONMENT = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod -buildvcs=false -modcacherw', GOWORK: 'off' }

/** Fetches and builds the generator. */
async function install(cache: string): Promise<void> {
  if (!Bun.which('go')) throw new Missing('Go is not installed.')
  const version = await execute(['go', 'version'], { cwd: cache })
  await once(cache, GENERATOR + version, async () => {
    const env = { ...ENVIRONMENT, GOBIN: join(cache, 'bin') }
    await execute(['go', 'install', GENERATOR], { cwd: cache, env }).catch((error: Error) => {
      throw new Missing(`its generator cannot be fetched: ${error.message}`)
    })
  })
}

/** Returns a document without the closed list of templates, whose ids are strings to a caller. */
function forGenerator(document: { components: { schemas: Record<string, { enum?: unknown }> } }): unknown {
  const changed = structuredClone(document)
  delete changed.components.schemas.TemplateId?.enum
  return changed
}

/**
 * Makes the files of a GOPROXY: go itself takes the module from a git repository with the tag of the version, as it does from the
 * published one.
 */
async function publish(source: string, proxy: string, cache: string, version: string): Promise<void> {
  const [, path = ''] = /^module (\S+)$/m.exec(readFileSync(join(source, 'go.mod'), 'utf8')) ?? []
  const tag = `v${version}`
  const repository = join(cache, 'repository')
  const modules = join(cache, 'modules')
  for (const directory of [repository, modules]) rmSync(directory, { recursive: true, force: true })
  cpSync(source, repository, { recursive: true })
  const settings = {
    'user.name': 'berth',
    'user.email': 'berth@localhost',
    'init.defaultBranch': 'main',
    'commit.gpgSign': 'false',
    'core.hooksPath': '/dev/null',
    [`url.file://${repository}.insteadOf`]: `https://${path}`,
  }
  const env: Record<string, string> = {
    ...ENVIRONMENT,
    GOMODCACHE: modules,
    GOPROXY: 'direct',
    GONOSUMDB: path,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_COUNT: String(Object.keys(settings).length),
    // The same bytes from the same source.
    GIT_AUTHOR_DATE: '2000-01-01T00:00:00Z',
    GIT_COMMITTER_DATE: '2000-01-01T00:00:00Z',
  }
  for (const [index, [key, value]] of Object.entries(settings).entries()) {
    env[`GIT_CONFIG_KEY_${index}`] = key
    env[`GIT_CONFIG_VALUE_${index}`] = value
  }
  for (const command of [['init'], ['add', '--all', '--force'], ['commit', '-m', tag], ['tag', tag]])
    await execute(['git', ...command], { cwd: repository, env })
  await execute(['go', 'mod', 'download', `${path}@${tag}`], { cwd: cache, env })
  const made = join(modules, 'cache/download', path, '@v')
  mkdirSync(join(proxy, path, '@v'), { recursive: true })
  for (const name of readdirSync(made))
    if (/\.(?:info|mod|zip)$/.test(name)) cpSync(join(made, name), join(proxy, path, '@v', name))
  writeFileSync(join(proxy, path, '@v/list'), `${tag}\n`)
  for (const directory of [repository, modules]) rmSync(directory, { recursive: true, force: true })
}
