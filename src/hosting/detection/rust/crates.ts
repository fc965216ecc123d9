import { posix } from 'node:path'
import { fieldsOf } from '../../../runtime/is-object.ts'
import type { SourceDirectory } from '../source.ts'

/** A package of Rust code. */
export interface Crate {
  /** Relative to the workspace; empty for the workspace itself. */
  readonly directory: string
  readonly name: string
  /** Its `Cargo.toml`. */
  readonly manifest: Record<string, unknown>
  /** Names of the packages that it depends on to run, and of those that its dependencies in the workspace do. */
  readonly dependencies: ReadonlySet<string>
  readonly programs: readonly RustProgram[]
}

/** A program of a crate. */
export interface RustProgram {
  readonly crate: Crate
  readonly name: string
  /** Its main file, relative to the workspace. */
  readonly file: string
  /** The file whose code listens, relative to the workspace; null if none is known to. */
  readonly listening: string | null
}

/** Matches code that listens. */
export const LISTENING_RUST =
  /\bTcpListener::bind|\bHttpServer::new|\baxum::serve\b|\bServer::(?:bind|http|builder|new)\b|\brocket::(?:build|custom|ignite|launch)\b|#\[(?:rocket::)?launch\]|\bwarp::serve\b|\btide::(?:new|with_state)\b|\bgotham::(?:start|init_server)\b|\btiny_http::|\brouille::start_server|\bserve_dir\b.*\bbind|\b(?:start_server|run_server)\(|\.listen\(/

/** Most files of code that are read of a crate. @bound peer */
const MAX_FILES = 200

/** Returns the crates of a directory: of its package and of the members of its workspace. */
export async function readCrates(directory: SourceDirectory): Promise<Crate[]> {
  const root = await directory.toml('Cargo.toml')
  if (root === null) return []
  const manifests = new Map([['', root]])
  for (const member of membersOf(root, directory)) {
    const manifest = await directory.tables(`${member}/Cargo.toml`)
    if (manifest !== null) manifests.set(member, manifest)
  }
  // Dependencies by path are members too, as a workspace's package names them.
  for (const [at, manifest] of manifests) {
    for (const path of pathsIn(manifest)) {
      const whole = posix.join(at, path)
      if (whole.startsWith('..') || whole === '.' || manifests.has(whole)) continue
      const found = await directory.tables(`${whole}/Cargo.toml`)
      if (found !== null) manifests.set(whole, found)
    }
  }
  const crates: Crate[] = []
  for (const [at, manifest] of manifests) {
    const name = fieldsOf(manifest.package).name
    if (typeof name !== 'string') continue
    const dependencies = dependenciesOf(at, manifests)
    const crate = { directory: at, name, manifest, dependencies }
    const programs: RustProgram[] = []
    const withPrograms: Crate = { ...crate, programs }
    programs.push(...(await programsOf(withPrograms, directory)))
    crates.push(withPrograms)
  }
  return crates
}

/** Returns the directories that a workspace names as its members. */
export function membersOf(manifest: Record<string, unknown>, directory: SourceDirectory): string[] {
  const { members, exclude } = fieldsOf(manifest.workspace)
  const strings = (value: unknown): string[] =>
    (Array.isArray(value) ? value : []).filter((one): one is string => typeof one === 'string')
  const globs = strings(members).map((one) => new Bun.Glob(posix.normalize(one).replace(/\/$/, '')))
  if (globs.length === 0) return []
  const left = strings(exclude).map((one) => posix.normalize(one).replace(/\/$/, ''))
  return directory.files
    .filter((path) => path.endsWith('/Cargo.toml'))
    .map((path) => path.slice(0, -'/Cargo.toml'.length))
    .filter((path) => globs.some((glob) => glob.match(path)))
    .filter((path) => !left.some((one) => path === one || path.startsWith(`${one}/`)))
}

const pathsIn = (manifest: Record<string, unknown>): string[] =>
  [manifest.dependencies, fieldsOf(manifest.workspace).dependencies].flatMap((table) =>
    Object.values(fieldsOf(table)).flatMap((one) => {
      const { path } = fieldsOf(one)
      return typeof path === 'string' ? [path] : []
    }),
  )

/** Returns the names of what a crate depends on, through other crates of the workspace too. */
function dependenciesOf(at: string, manifests: ReadonlyMap<string, Record<string, unknown>>): Set<string> {
  const byName = new Map([...manifests.values()].map((one) => [fieldsOf(one.package).name, one]))
  const found = new Set<string>()
  const add = (manifest: Record<string, unknown>): void => {
    for (const [key, value] of Object.entries(fieldsOf(manifest.dependencies))) {
      const { package: renamed } = fieldsOf(value)
      const name = typeof renamed === 'string' ? renamed : key
      if (found.has(name)) continue
      found.add(name)
      const own = byName.get(name)
      if (own !== undefined) add(own)
    }
  }
  const manifest = manifests.get(at)
  if (manifest !== undefined) add(manifest)
  return found
}

/** Returns the programs of a crate: `[[bin]]`, `src/main.rs` and `src/bin`. */
async function programsOf(crate: Crate, directory: SourceDirectory): Promise<RustProgram[]> {
  const at = (path: string): string => posix.join(crate.directory, path)
  const files = new Map<string, string>()
  const pkg = fieldsOf(crate.manifest.package)
  if (pkg.autobins !== false) {
    if (directory.has(at('src/main.rs'))) files.set(crate.name, at('src/main.rs'))
    for (const path of directory.files) {
      const within = crate.directory === '' ? path : path.slice(crate.directory.length + 1)
      if (at(within) !== path) continue
      const [, name] = /^src\/bin\/(?:([^/]+)\.rs|([^/]+)\/main\.rs)$/.exec(within)?.filter(Boolean) ?? []
      if (name !== undefined) files.set(name, path)
    }
  }
  for (const bin of Array.isArray(crate.manifest.bin) ? crate.manifest.bin : []) {
    const { name, path } = fieldsOf(bin)
    if (typeof name !== 'string') continue
    const stated = typeof path === 'string' ? at(path) : (files.get(name) ?? at(`src/bin/${name}.rs`))
    // A file has one program: the stated name takes the place of the usual one.
    for (const [other, file] of files) if (file === stated) files.delete(other)
    files.set(name, stated)
  }
  const library = await listeningFileOf(crate, directory)
  const programs: RustProgram[] = []
  for (const [name, file] of files) {
    const text = uncommented(await directory.code(file))
    const usesLibrary =
      posix.basename(file) === 'main.rs' ||
      files.size === 1 ||
      new RegExp(`\\b${crate.name.replace(/\W/g, '_')}::`).test(text)
    const listening = LISTENING_RUST.test(text) ? file : usesLibrary ? library : null
    programs.push({ crate, name, file, listening })
  }
  return programs
}

/** Returns the file of a crate's code, its programs in `src/bin` aside, that listens; null if none does. */
async function listeningFileOf({ directory: at }: Crate, directory: SourceDirectory): Promise<string | null> {
  const source = posix.join(at, 'src')
  const files = directory.files
    .filter((path) => path.startsWith(`${source}/`) && path.endsWith('.rs'))
    .filter((path) => !path.startsWith(`${source}/bin/`) && !/(?:^|\/)tests?(?:\/|\.rs$)/.test(path))
    .slice(0, MAX_FILES)
  for (const path of files) if (LISTENING_RUST.test(uncommented(await directory.code(path)))) return path
  return null
}

const uncommented = (text: string): string => text.replace(/^[ \t]*\/\/.*$/gm, '')
