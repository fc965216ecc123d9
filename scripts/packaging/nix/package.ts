import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Release } from '../release.ts'

const PROCESSORS = { x64: 'x86_64', arm64: 'aarch64' } as const

/**
 * Writes `release.json`, from which the flake takes the executable. It belongs beside `flake.nix` in the commit after the
 * release: the executable names its own commit, which cannot contain its hash.
 */
export function packageForNix({ owner, version, builds, out }: Release): void {
  const systems = builds
    .filter(({ target }) => target.libc !== 'musl')
    .map(({ target }) => {
      const archive = `berth-${version}-${target.name}.tar.gz`
      const sha256 = new Bun.CryptoHasher('sha256').update(readFileSync(join(out, archive))).digest('hex')
      const url = `https://github.com/${owner}/berth/releases/download/v${version}/${archive}`
      return [`${PROCESSORS[target.processor]}-${target.system}`, { url, sha256 }]
    })
  mkdirSync(join(out, 'nix'))
  const text = JSON.stringify({ version, systems: Object.fromEntries(systems) }, null, 2)
  writeFileSync(join(out, 'nix/release.json'), `${text}\n`)
}
