import { chmodSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { run } from '../bun-executable.ts'
import { fill, type Release } from '../release.ts'

/** Debian's names of processors. */
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' } as const

/**
 * Writes a Debian package for each Linux with glibc: the executable, its licences, and a systemd unit that a user may enable. It
 * has no scripts that run at an installation. Without dpkg-deb it writes none, and says so.
 */
export function packageForDebian({ owner, version, builds, licenses, out, work }: Release): void {
  if (Bun.which('dpkg-deb') === null) {
    console.error('There is no dpkg-deb: no Debian package was built.')
    return
  }
  const unit = readFileSync(join(import.meta.dir, '../systemd/berth.service'), 'utf8')
  for (const { target, path } of builds) {
    if (target.libc !== 'glibc') continue
    const architecture = ARCHITECTURES[target.processor]
    const tree = join(work, `debian-${architecture}`)
    const write = (name: string, text: string): void => {
      mkdirSync(dirname(join(tree, name)), { recursive: true })
      writeFileSync(join(tree, name), text)
      chmodSync(join(tree, name), 0o644)
    }
    const program = join(tree, 'usr/bin/berth')
    mkdirSync(dirname(program), { recursive: true })
    cpSync(path, program)
    chmodSync(program, 0o755)
    write('usr/share/doc/berth/copyright', licenses)
    write('usr/lib/systemd/user/berth.service', fill(unit, { owner, executable: '/usr/bin/berth' }))
    const kibibytes = Math.ceil((statSync(program).size + licenses.length + unit.length) / 1024)
    write(
      'DEBIAN/control',
      `Package: berth
Version: ${version}
Architecture: ${architecture}
Maintainer: ${owner} <${owner}@users.noreply.github.com>
Installed-Size: ${kibibytes}
Depends: libc6 (>= 2.17)
Recommends: bubblewrap, ca-certificates, git, nftables
Section: devel
Priority: optional
Homepage: https://github.com/${owner}/berth
Description: local server-provisioning and agent-task API
 berth provisions sandboxes on this machine and speaks a REST API, OAuth and MCP,
 with a dashboard: for offline development, integration tests and CI.
`,
    )
    // dpkg-deb takes the time of all files from SOURCE_DATE_EPOCH.
    const file = join(out, `berth_${version}_${architecture}.deb`)
    run(['dpkg-deb', '--root-owner-group', '-Zgzip', '-z6', '--build', tree, file])
  }
}
