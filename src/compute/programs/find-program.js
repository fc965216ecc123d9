// Runs in a server, by berth's own Bun: NAME [ARGUMENT...]. Prints, for a shell to evaluate, how to start a package manager
// that is not installed: berth keeps it below the directory of tools, in the version that the project names.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const [called, command = ''] = process.argv.slice(2)
const { BERTH_PACKAGES_URL, BERTH_PACKAGES_TOKEN, BERTH_PACKAGES_CACHES, FROM = '/' } = process.env
const tools = dirname(import.meta.dir)
const relay = `${BERTH_PACKAGES_URL}-/${BERTH_PACKAGES_TOKEN}`
/** The program that another name belongs to. */
const FAMILIES = { npx: 'npm', pnpx: 'pnpm', yarnpkg: 'yarn', uvx: 'uv' }
const family = FAMILIES[called] ?? called
const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`

function fail(message) {
  console.error(`${called}: ${message}`)
  process.exit(1)
}

/** Returns the nearest file of a name with its text, in the working directory or above. */
function nearest(name, accepts = () => true) {
  for (let directory = FROM; ; directory = dirname(directory)) {
    try {
      const text = readFileSync(join(directory, name), 'utf8')
      if (accepts(text)) return { path: join(directory, name), text }
    } catch {
      // There is none here.
    }
    if (directory === dirname(directory)) return null
  }
}

/** Returns the version that the project wants, with its hash and the file that says so; null if it says none. */
function wanted() {
  if (family === 'uv') return wantedUv()
  const pattern = new RegExp(`"packageManager"\\s*:\\s*"${family}@([^+"]+)(?:\\+([^"]+))?"`)
  const named = nearest('package.json', (text) => pattern.test(text))
  if (named !== null) {
    const [, version, hash = ''] = pattern.exec(named.text)
    return { version, hash, by: named.path }
  }
  // The lock file says which versions can read it.
  if (family === 'yarn') {
    const settings = nearest('.yarnrc.yml') ?? nearest('yarn.lock', (text) => text.includes('\n__metadata:'))
    return settings === null ? null : { version: '4', hash: '', by: settings.path }
  }
  const lock = family === 'pnpm' ? nearest('pnpm-lock.yaml') : null
  const [, form] = /^lockfileVersion: *['"]?(\d+)/m.exec(lock?.text ?? '') ?? []
  const version = { 5: '7', 6: '8' }[form]
  return version === undefined ? null : { version, hash: '', by: lock.path }
}

function wantedUv() {
  for (const name of ['uv.toml', 'pyproject.toml']) {
    const file = nearest(name, (text) => text.includes('required-version'))
    if (file === null) continue
    try {
      const settings = Bun.TOML.parse(file.text)
      const version = (name === 'uv.toml' ? settings : settings.tool?.uv)?.['required-version']
      if (typeof version === 'string') return { version, hash: '', by: file.path }
    } catch {
      // uv itself reports the mistake.
    }
  }
  return null
}

/** Returns the absolute path of a program that berth keeps. */
async function kept(name, wish) {
  const version = wish === null ? '' : ` ${wish.version}, which ${wish.by} names,`
  const remedy = `Connect this machine to the network once, or install ${family} on it.`
  if (!BERTH_PACKAGES_URL)
    fail(`${family}${version} is not installed, and berth has no package cache. ${remedy}`)
  const stated = wish === null ? {} : { version: wish.version, hash: wish.hash }
  const query = new URLSearchParams({ processor: process.arch, ...stated })
  const address = `${relay}/programs/${name}?${query}`
  try {
    const response = await fetch(address)
    const { path, error } = await response.json()
    if (response.ok) return existsSync(join(tools, path)) ? join(tools, path) : await copied(address, path)
    fail(`${family}${version} is not installed, and berth cannot fetch it: ${error} ${remedy}`)
  } catch (error) {
    fail(`${family}${version} is not installed, and berth does not give it: ${error.message}. ${remedy}`)
  }
}

/** Returns the absolute path of a program in the server's caches, for a server elsewhere that does not see what berth keeps. */
async function copied(address, path) {
  const program = join(BERTH_PACKAGES_CACHES, path)
  if (existsSync(program)) return program
  const [programs, hash] = path.split('/')
  const place = join(BERTH_PACKAGES_CACHES, programs, hash)
  const fresh = `${place}.${process.pid}`
  const response = await fetch(`${address}&archive`)
  if (!response.ok) throw new Error((await response.json()).error)
  await new Bun.Archive(await response.bytes()).extract(fresh)
  moveIn(fresh, place)
  return program
}

/** Moves a directory to its place, unless another command has been faster. */
function moveIn(fresh, place) {
  try {
    renameSync(fresh, place)
  } catch {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Installs a program of Python for this server, by the list of its packages and their hashes that berth comes with. */
async function python(name) {
  const list = join(tools, 'etc', `${name}.txt`)
  const probe = spawnSync('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'])
  const version = String(probe.stdout ?? '').trim()
  const [, minor = '0'] = version.split('.')
  if (Number(minor) < 10) fail(`it needs Python 3.10 or later, and python3 is ${version || 'not installed'}.`)
  const hash = new Bun.CryptoHasher('sha256').update(readFileSync(list)).digest('hex').slice(0, 12)
  const place = join(BERTH_PACKAGES_CACHES, 'programs', `${name}-${hash}-${version}`)
  const program = join(place, 'bin', name)
  if (existsSync(program)) return program
  const uv = await kept('uv', null)
  const fresh = `${place}.${process.pid}`
  mkdirSync(dirname(place), { recursive: true })
  const { PATH, HOME, UV_CACHE_DIR } = process.env
  // Neither settings of a project nor an index of the server's serve a tool.
  const env = { PATH, HOME, UV_CACHE_DIR, UV_LINK_MODE: 'copy', UV_DEFAULT_INDEX: `${relay}/pypi/simple/` }
  const run = (...given) => {
    const { status, stderr } = spawnSync(uv, ['--no-config', '--quiet', ...given], { env, cwd: '/' })
    if (status === 0) return
    rmSync(fresh, { recursive: true, force: true })
    const remedy = `Connect this machine to the network once, or install ${name} on it.`
    fail(`it is not installed, and its packages cannot be fetched: ${String(stderr).trim()}\n${remedy}`)
  }
  run('venv', '--relocatable', '--no-project', '--python', 'python3', fresh)
  run(
    'pip',
    'install',
    '--python',
    fresh,
    '--require-hashes',
    '--no-deps',
    '--only-binary',
    ':all:',
    '-r',
    list,
  )
  moveIn(fresh, place)
  return program
}

/** Reports whether a file of a name, in the working directory, above it or at home, has a line. */
function isSet(name, line) {
  const home = join(process.env.HOME ?? '/', name)
  return (
    nearest(name, (text) => line.test(text)) !== null ||
    (existsSync(home) && line.test(readFileSync(home, 'utf8')))
  )
}

/** Reports whether Yarn 1 is called, which takes no settings for the relay. */
const isClassicYarn = (wish) => family === 'yarn' && /^[01]\./.test(wish?.version ?? '1.')

/** Returns the variables that make a package manager of JavaScript use the relay, unless something names a registry. */
function settings(wish) {
  const { npm_config_registry, YARN_NPM_REGISTRY_SERVER } = process.env
  if (family === 'pnpm') {
    const store = { npm_config_store_dir: join(BERTH_PACKAGES_CACHES, 'pnpm') }
    if (npm_config_registry || isSet('.npmrc', /^\s*registry\s*=/m)) return store
    // Several versions take no credential from npm's global settings, so the address has it.
    return { ...store, npm_config_registry: `${relay}/npm/` }
  }
  if (isClassicYarn(wish)) return { BERTH_PACKAGES_NPM: `${relay}/npm` }
  if (family !== 'yarn' || YARN_NPM_REGISTRY_SERVER || isSet('.yarnrc.yml', /^npmRegistryServer\s*:/m))
    return {}
  return {
    YARN_NPM_REGISTRY_SERVER: BERTH_PACKAGES_URL.replace(/\/$/, ''),
    YARN_NPM_AUTH_TOKEN: BERTH_PACKAGES_TOKEN,
    YARN_NPM_ALWAYS_AUTH: 'true',
    YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1',
  }
}

const lines = []
if (family === 'poetry' || family === 'pipenv') lines.push(`set -- ${quote(await python(family))} "$@"`)
else {
  const wish = wanted()
  const program = await kept(called, wish)
  if (family === 'uv') {
    const isOfPip = called === 'uvx' || ['pip', 'tool', 'x', 'venv'].includes(command)
    const { UV_DEFAULT_INDEX, UV_INDEX_URL, PIP_INDEX_URL } = process.env
    const names = /^\s*(?:index-url|default-index)\s*=|^\s*\[\[(?:tool\.uv\.)?index\]\]/m
    const isNamed = ['uv.toml', 'pyproject.toml'].some(
      (name) => nearest(name, (text) => names.test(text)) !== null,
    )
    if (isOfPip && PIP_INDEX_URL && !UV_DEFAULT_INDEX && !UV_INDEX_URL && !isNamed)
      lines.push(`export UV_DEFAULT_INDEX=${quote(PIP_INDEX_URL)}`)
    lines.push(`set -- ${quote(program)} "$@"`)
  } else {
    for (const [name, value] of Object.entries(settings(wish))) lines.push(`export ${name}=${quote(value)}`)
    const before = []
    if (isClassicYarn(wish) && BERTH_PACKAGES_URL) before.push('-r', join(tools, 'lib/yarn-relay.js'))
    if (family === 'npm') before.push('-r', join(tools, 'lib/npm-modules.js'))
    lines.push(`set -- node ${[...before, program].map(quote).join(' ')} "$@"`)
  }
}
console.log(lines.join('\n'))
