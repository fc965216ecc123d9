import { posix } from 'node:path'
import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import { type Candidate, type Provider, startCommand } from '../candidate.ts'
import { type Crate, LISTENING_RUST, membersOf, type RustProgram, readCrates } from '../rust/crates.ts'
import type { SourceDirectory } from '../source.ts'
import { atLeast, needsOf, pinned, readPin, type ToolNeed } from '../versions.ts'

/** Packages that a server is written with, and what the log calls them. */
const FRAMEWORKS: readonly [name: string, title: string][] = [
  ['leptos', 'Leptos'],
  ['loco-rs', 'Loco'],
  ['axum', 'Axum'],
  ['actix-web', 'Actix Web'],
  ['rocket', 'Rocket'],
  ['warp', 'Warp'],
  ['poem', 'Poem'],
  ['salvo', 'Salvo'],
  ['tide', 'Tide'],
  ['gotham', 'Gotham'],
  ['ntex', 'ntex'],
  ['rouille', 'Rouille'],
  ['tiny_http', 'tiny_http'],
  ['tonic', 'Tonic'],
  ['hyper', 'hyper'],
]

/** Packages whose programs do not run as they are: why, and what to write. */
const OBSTACLES: readonly [name: string, obstacle: string][] = [
  ['tauri', 'it is a desktop app (Tauri), which has windows and answers no requests'],
  ['worker', 'it is a worker for Cloudflare, which runs there only'],
  ['lambda_http', 'it is a function for AWS Lambda, which runs there only'],
  ['shuttle-runtime', 'it is started by Shuttle: {"start": "cargo shuttle run --port $PORT"}'],
]

/** Rust: the programs of a package or a workspace, of which one that listens is the app. */
export const rust: Provider = {
  name: 'rust',
  marks: /^Cargo\.toml$/,
  async look(directory) {
    const crates = await readCrates(directory)
    const manifest = await directory.toml('Cargo.toml')
    if (manifest === null) return []
    const covers = crates.map((crate) => crate.directory).filter(Boolean)
    const tools = await toolsOf(directory, crates)
    const target = await targetOf(directory)
    const base = {
      ...{ tools, covers, path: [posix.join(target, 'release')] },
      runs: /(?:^|[\s/;&])(?:cargo\b|target\/(?:[\w-]+\/)?release\/)/,
    }
    const nowhere = (obstacle: string, evidence: Evidence[]): Candidate[] => [
      { ...base, kind: 'Rust', strength: 'none', obstacle, evidence },
    ]
    const pages = directory.first(['Trunk.toml', 'Dioxus.toml'])
    const programs = await sorted(crates, directory)
    const [likeliest] = programs
    if (pages !== null && likeliest?.listening == null) {
      const build = pages === 'Trunk.toml' ? 'trunk build --release' : 'dx build --release'
      return nowhere(
        `There is ${pages}: it is an app for browsers, which ${build.split(' ')[0]} builds. Write {"build": "${build}", "static": {"folder": "dist", "fallback": true}} into berth.json where that is installed.`,
        [await directory.evidence(pages)],
      )
    }
    const line = await directory.evidence('Cargo.toml', /^\s*name\s*=|^\[workspace\]/)
    if (likeliest === undefined) {
      const reason = await withoutProgram(crates)
      return nowhere(`There is a Cargo.toml, but ${reason}.`, [line])
    }
    const obstacle = OBSTACLES.find(([name]) => likeliest.crate.dependencies.has(name))?.[1]
    if (obstacle !== undefined)
      return nowhere(`There is a Cargo.toml, but ${obstacle}.`, [
        await directory.evidence(posix.join(likeliest.crate.directory, 'Cargo.toml'), /^\s*name\s*=/),
      ])
    const listening = programs.filter((one) => one.listening !== null)
    const apps = listening.length > 0 ? listening : [likeliest]
    const procfile = await directory.textOf('Procfile')
    const needed = programs.filter((one) => apps.includes(one) || procfile.includes(one.name))
    const build = buildOf(needed, crates, directory)
    const candidates: Candidate[] = []
    for (const app of apps) {
      const framework = FRAMEWORKS.find(([name]) => app.crate.dependencies.has(name))?.[1] ?? null
      candidates.push({
        ...{ ...base, build },
        kind: framework === null ? 'Rust' : `Rust (${framework})`,
        strength: app.listening !== null ? 'proven' : framework === null ? 'weak' : 'stated',
        start: startCommand(startOf(app, target)),
        evidence: [
          line,
          app.listening === null
            ? await directory.evidence(app.file, /\bfn main\(/)
            : await directory.evidence(app.listening, LISTENING_RUST),
        ],
        warnings:
          app.listening === null && programs.length > 1
            ? [
                `None of the programs ${programs.map(({ name }) => name).join(', ')} is known to listen; ${app.name} was taken. berth.json chooses another: {"start": "./${target}/release/NAME"}`,
              ]
            : [],
      })
    }
    return candidates
  },
}

/** Returns all programs, likeliest first: those that listen, the default one, then by name. */
async function sorted(crates: readonly Crate[], directory: SourceDirectory): Promise<RustProgram[]> {
  const aside = /(?:^|\/)(?:examples?|tests?|benches|tools?|xtask|scripts?|fuzz)(?:\/|$)/
  const defaults = crates.map(({ manifest }) => fieldsOf(manifest.package)['default-run'])
  const stated = fieldsOf((await directory.toml('Cargo.toml'))?.workspace)['default-members']
  const isDefault = (crate: Crate): boolean => Array.isArray(stated) && stated.includes(crate.directory)
  const order = ({ crate, name, listening }: RustProgram): number =>
    (listening === null ? 100 : 0) +
    (aside.test(crate.directory) ? 50 : 0) +
    (OBSTACLES.some(([one]) => crate.dependencies.has(one)) ? 200 : 0) -
    (defaults.includes(name) ? 40 : 0) -
    (isDefault(crate) ? 20 : 0) -
    (FRAMEWORKS.some(([one]) => crate.dependencies.has(one)) ? 5 : 0) -
    (/server|web|api|app|http|backend/.test(name) ? 3 : 0) -
    (name === crate.name ? 1 : 0)
  return crates
    .flatMap(({ programs }) => programs)
    .map((program) => ({ program, order: order(program) }))
    .sort((a, b) => a.order - b.order)
    .map(({ program }) => program)
}

function startOf({ name, crate }: RustProgram, target: string): string {
  const program = shellQuote([`./${target}/release/${name}`])
  // These take their port from no PORT.
  if (crate.dependencies.has('rocket')) return `ROCKET_ADDRESS=$HOST ROCKET_PORT=$PORT ${program}`
  if (crate.dependencies.has('leptos')) return `LEPTOS_SITE_ADDR=$HOST:$PORT ${program}`
  return crate.dependencies.has('loco-rs') ? `${program} start --binding $HOST --port $PORT` : program
}

/** Builds the crates of programs. A lock is obeyed; without one Cargo writes it. */
function buildOf(
  programs: readonly RustProgram[],
  crates: readonly Crate[],
  directory: SourceDirectory,
): string {
  const isLocked = [directory, ...directory.above].some((at) => at.has('Cargo.lock'))
  const names = [...new Set(programs.map(({ crate }) => crate.name))]
  const only = crates.length === 1 ? [] : names.flatMap((name) => ['-p', name])
  return ['cargo build --release --bins', ...(isLocked ? ['--locked'] : []), shellQuote(only)]
    .filter(Boolean)
    .join(' ')
}

/** Returns where Cargo puts what it builds, relative to the directory, by `.cargo/config.toml` and the workspace above. */
async function targetOf(directory: SourceDirectory): Promise<string> {
  const file = directory.first(['.cargo/config.toml', '.cargo/config'])
  const build = fieldsOf((file === null ? null : await directory.toml(file).catch(() => null))?.build)
  const platform = typeof build.target === 'string' ? build.target : ''
  const stated = build['target-dir']
  let top = ''
  for (const at of directory.above) {
    const manifest = await at.tables('Cargo.toml')
    const way = posix.relative(`/${directory.path}`, `/${at.path}`)
    const own = posix.relative(`/${at.path}`, `/${directory.path}`)
    if (manifest !== null && membersOf(manifest, at).includes(own)) top = way
  }
  return posix.join(typeof stated === 'string' ? stated : posix.join(top, 'target'), platform)
}

async function withoutProgram(crates: readonly Crate[]): Promise<string> {
  if (crates.length === 0) return 'it names no package'
  const web = crates.find(({ dependencies }) => dependencies.has('wasm-bindgen') || dependencies.has('yew'))
  if (web !== undefined) {
    const at = web.directory === '' ? '' : `cd ${web.directory} && `
    return `${web.name} is built for browsers (WebAssembly): write {"build": "${at}wasm-pack build --target web", "static": {"folder": "."}} into berth.json where wasm-pack is installed`
  }
  return `${crates.map(({ name }) => name).join(', ')} ${crates.length === 1 ? 'is a library' : 'are libraries'}: there is no src/main.rs, src/bin or [[bin]]`
}

/** The oldest Rust that knows an edition. */
const EDITIONS: Readonly<Record<string, string>> = { '2018': '1.31', '2021': '1.56', '2024': '1.85' }

/** Returns the versions that the manifests, `rust-toolchain` and version managers ask for. */
async function toolsOf(directory: SourceDirectory, crates: readonly Crate[]): Promise<ToolNeed[]> {
  const root = fieldsOf(fieldsOf((await directory.toml('Cargo.toml'))?.workspace).package)
  const tables = [
    { file: 'Cargo.toml', table: root },
    ...crates
      .filter(({ programs }) => programs.length > 0)
      .map(({ directory: path, manifest }) => ({
        file: posix.join(path, 'Cargo.toml'),
        table: fieldsOf(manifest.package),
      })),
  ]
  const least = tables.flatMap(({ file, table }) => {
    const version = table['rust-version'] ?? EDITIONS[String(table.edition)]
    return typeof version === 'string' ? [atLeast('cargo', version, directory.pathOf(file), true)] : []
  })
  const file = directory.first(['rust-toolchain.toml', 'rust-toolchain'])
  const stated = file === null ? await readPin(directory, 'cargo') : await channelOf(directory, file)
  return needsOf('cargo', [...least, stated])
}

/** Returns the need of the toolchain that a file names; null for a stable one. */
async function channelOf(directory: SourceDirectory, file: string): Promise<ToolNeed | null> {
  const text = await directory.textOf(file)
  const channel = /channel\s*=\s*["']([^"']+)["']/.exec(text)?.[1] ?? /^\s*([\w.-]+)\s*$/.exec(text)?.[1]
  if (channel === undefined || /^stable\b/.test(channel)) return null
  const need = pinned('cargo', channel, directory.pathOf(file))
  return /^\d/.test(channel) ? need : { ...need, fits: (version) => version.includes(channel) }
}
