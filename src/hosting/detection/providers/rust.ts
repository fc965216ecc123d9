import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import { type Provider, startCommand } from '../candidate.ts'
import { anyVersion } from '../versions.ts'

/** Rust: the package's program. */
export const rust: Provider = {
  name: 'rust',
  marks: /^Cargo\.toml$/,
  async look(directory) {
    const cargo = await directory.toml('Cargo.toml')
    if (cargo === null) return []
    const name = programOf(cargo)
    return [
      {
        kind: 'Rust',
        strength: name === null ? 'none' : 'proven',
        install: null,
        build: 'cargo build --release',
        start: name === null ? null : startCommand(`./target/release/${shellQuote([name])}`),
        obstacle: 'Cargo.toml does not say which of several programs is the app.',
        tools: [anyVersion('cargo')],
        evidence: [await directory.evidence('Cargo.toml', /^\s*name\s*=/)],
        runs: /(?:^|[\s/;&])(?:cargo|target\/release\/)/,
      },
    ]
  },
}

function programOf(cargo: Record<string, unknown>): string | null {
  const pkg = fieldsOf(cargo.package)
  const bins = (Array.isArray(cargo.bin) ? cargo.bin : []).flatMap((bin: { name?: unknown }) =>
    typeof bin?.name === 'string' ? [bin.name] : [],
  )
  const chosen = pkg['default-run'] ?? (bins.length > 0 ? (bins.length === 1 ? bins[0] : null) : pkg.name)
  return typeof chosen === 'string' ? chosen : null
}
