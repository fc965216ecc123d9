import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ArchiveFile, gzip, tar } from '../archive.ts'
import { fill, type Release } from '../release.ts'

/** What all packages of npm say of themselves. */
const about = ({ owner, version }: Release) => ({
  version,
  description: 'A local, self-hosted server-provisioning and agent-task API in one executable',
  license: 'MIT',
  repository: { type: 'git', url: `git+https://github.com/${owner}/berth.git` },
  publishConfig: { access: 'public' },
})

/**
 * Writes archives that `npm publish FILE` takes: a package for each system with its executable, and one with the launcher that
 * has them as optional dependencies, so that npm installs the one that fits.
 */
export async function packageForNpm(release: Release): Promise<void> {
  const { owner, version, builds, out, seconds } = release
  const scope = `@${owner}`
  const directory = join(out, 'npm')
  mkdirSync(directory)
  const write = async (name: string, manifest: object, files: readonly ArchiveFile[]): Promise<void> => {
    const whole = { name: `${scope}/${name}`, ...about(release), ...manifest }
    const all = [
      { path: 'package.json', bytes: Buffer.from(`${JSON.stringify(whole, null, 2)}\n`) },
      { path: 'LICENSE', bytes: readFileSync(join(import.meta.dir, '../../../LICENSE')) },
      ...files,
    ].map((file) => ({ ...file, path: `package/${file.path}` }))
    writeFileSync(join(directory, `${owner}-${name}-${version}.tgz`), gzip(await tar(all, seconds)))
  }
  const names = builds.map(({ target }) => target.name)
  for (const { target, bytes } of builds) {
    const { name, system, processor, libc } = target
    const only = { os: [system], cpu: [processor], ...(libc ? { libc: [libc] } : {}) }
    await write(
      `berth-${name}`,
      { ...only, preferUnplugged: true, files: ['bin', 'THIRD-PARTY-LICENSES.txt'] },
      [
        { path: 'bin/berth', bytes, isProgram: true },
        { path: 'THIRD-PARTY-LICENSES.txt', bytes: Buffer.from(release.licenses) },
      ],
    )
  }
  const filled = (file: string): Uint8Array =>
    Buffer.from(
      fill(readFileSync(join(import.meta.dir, file), 'utf8'), { scope, version, targets: names.join(' ') }),
    )
  const manifest = {
    bin: { berth: 'bin/berth' },
    main: 'index.js',
    types: 'index.d.ts',
    files: ['bin', 'index.js', 'index.d.ts'],
    os: ['linux', 'darwin'],
    optionalDependencies: Object.fromEntries(names.map((name) => [`${scope}/berth-${name}`, version])),
  }
  await write('berth', manifest, [
    { path: 'README.md', bytes: filled('README.md') },
    { path: 'bin/berth', bytes: filled('berth.sh'), isProgram: true },
    { path: 'index.js', bytes: filled('index.js') },
    { path: 'index.d.ts', bytes: filled('index.d.ts') },
  ])
}
