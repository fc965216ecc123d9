import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fill, type Release } from '../release.ts'

/** Writes install.sh, with the hashes of the archives in it. */
export function packageInstaller({ owner, version, builds, out }: Release): void {
  const sums = builds.map(({ target }) => {
    const archive = `berth-${version}-${target.name}.tar.gz`
    const hash = new Bun.CryptoHasher('sha256').update(readFileSync(join(out, archive))).digest('hex')
    return `${hash}  ${archive}`
  })
  const template = readFileSync(join(import.meta.dir, 'install.sh'), 'utf8')
  const script = fill(template, { owner, version, sums: sums.join('\n') })
  writeFileSync(join(out, 'install.sh'), script, { mode: 0o755 })
}
