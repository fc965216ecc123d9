import { fieldsOf } from '../../../runtime/is-object.ts'
import { quote } from '../tools.ts'
import { type DetectedApp, type Detector, startCommand, unknownStart } from './detected-app.ts'

/** Go: the program of the module's own directory, else the only or the likeliest one of `cmd`. */
export const detectGo: Detector = async (app) => {
  const module = await app.text('go.mod')
  if (module === null) return null
  const build = async (): Promise<string | null> => {
    const files = (await app.files()).filter((path) => path.endsWith('.go') && !path.endsWith('_test.go'))
    const texts = files.filter((path) => /^(?:[^/]+|cmd\/[^/]+\/[^/]+)$/.test(path))
    const programs = new Set<string>()
    for (const path of texts) {
      if (/^package main\b/m.test((await app.code(path)) ?? ''))
        programs.add(path.split('/').slice(0, -1).join('/'))
    }
    const name = /^module[ \t]+(\S+)\s*$/m.exec(module)?.[1]?.split('/').at(-1)
    const likely = ['', 'cmd/server', 'cmd/web', 'cmd/api', 'cmd/app', `cmd/${name}`]
    return (
      likely.find((directory) => programs.has(directory)) ??
      (programs.size === 1 ? ([...programs][0] ?? null) : null)
    )
  }
  const directory = await build()
  const found = { kind: 'Go', install: null, bin: null, needs: ['go'] }
  if (directory === null) {
    const reason =
      'There is a go.mod, but no single "package main" in its directory or in cmd/ that would be the app.'
    return { ...found, build: null, start: unknownStart(reason) }
  }
  const target = directory === '' ? '.' : `./${directory}`
  return {
    ...found,
    build: `mkdir -p bin && go build -o bin/app ${quote(target)}`,
    start: startCommand('./bin/app'),
  }
}

/** Rust: the package's program. */
export const detectRust: Detector = async (app) => {
  const cargo = await app.toml('Cargo.toml')
  if (cargo === null) return null
  const found = { kind: 'Rust', install: null, build: 'cargo build --release', bin: null, needs: ['cargo'] }
  const name = programOf(cargo)
  const start: DetectedApp['start'] =
    name === null
      ? unknownStart('Cargo.toml does not say which of several programs is the app.')
      : startCommand(`./target/release/${quote(name)}`)
  return { ...found, start }
}

function programOf(cargo: Record<string, unknown>): string | null {
  const pkg = fieldsOf(cargo.package)
  const bins = (Array.isArray(cargo.bin) ? cargo.bin : []).flatMap((bin: { name?: unknown }) =>
    typeof bin?.name === 'string' ? [bin.name] : [],
  )
  const chosen = pkg['default-run'] ?? (bins.length > 0 ? (bins.length === 1 ? bins[0] : null) : pkg.name)
  return typeof chosen === 'string' ? chosen : null
}
