import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fill, type Release } from '../release.ts'

const SYSTEMS = { darwin: 'macos', linux: 'linux' } as const
const PROCESSORS = { arm64: 'arm', x64: 'intel' } as const

/** Writes a tap, a repository of its own, with the formula. Homebrew has no musl. */
export function packageForHomebrew({ owner, version, builds, out }: Release): void {
  const blocks = (['darwin', 'linux'] as const).flatMap((system) => {
    const ofSystem = builds.filter(({ target }) => target.system === system && target.libc !== 'musl')
    if (ofSystem.length === 0) return []
    const inner = ofSystem.map(({ target }) => {
      const archive = `berth-${version}-${target.name}.tar.gz`
      const hash = new Bun.CryptoHasher('sha256').update(readFileSync(join(out, archive))).digest('hex')
      return `    on_${PROCESSORS[target.processor]} do
      url "https://github.com/${owner}/berth/releases/download/v${version}/${archive}"
      sha256 "${hash}"
    end\n`
    })
    return [`  on_${SYSTEMS[system]} do\n${inner.join('')}  end\n`]
  })
  const directory = join(out, 'repositories/homebrew-tap/Formula')
  mkdirSync(directory, { recursive: true })
  const template = readFileSync(join(import.meta.dir, 'berth.rb'), 'utf8')
  const places = `${blocks.join('\n')}`
  writeFileSync(join(directory, 'berth.rb'), fill(template, { owner, version, places }))
  writeFileSync(
    join(directory, '../README.md'),
    `# Homebrew tap of berth\n\n    brew install ${owner}/tap/berth\n\nThe formula is written by \`scripts/release\` of berth.\n`,
  )
}
