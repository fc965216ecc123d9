import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lacks, Machine, release, version } from './support.ts'

const isRoot = process.getuid?.() === 0
const hasDpkg = Bun.which('dpkg') !== null && existsSync(join(release, `berth_${version}_amd64.deb`))
const reason = !hasDpkg
  ? 'the Debian package: there is no dpkg'
  : isRoot
    ? null
    : 'the Debian package: root installs packages'

test.skipIf(lacks(reason))(
  'dpkg installs the package into a root, berth runs, and a removal leaves nothing',
  async () => {
    using machine = new Machine()
    const root = join(machine.path, 'root')
    const database = join(root, 'var/lib/dpkg')
    for (const directory of ['info', 'updates', 'triggers'])
      mkdirSync(join(database, directory), { recursive: true })
    // The dependencies are this machine's own: dpkg must know that they are there.
    const libc = (await machine.output(['dpkg-query', '-s', 'libc6:amd64'])).replace(/\n+$/, '\n')
    const bare = libc.replace(/^(?:Depends|Recommends|Suggests|Breaks|Conffiles):.*(?:\n .*)*\n/gm, '')
    writeFileSync(join(database, 'status'), `${bare}\n`)
    for (const file of ['available', 'diversions', 'statoverride']) writeFileSync(join(database, file), '')
    const dpkg = (...args: string[]) =>
      machine.output([
        'dpkg',
        `--root=${root}`,
        '--force-unsafe-io',
        '--force-script-chrootless',
        '--log=/dev/null',
        ...args,
      ])
    await dpkg('--install', join(release, `berth_${version}_amd64.deb`))
    expect(readFileSync(join(database, 'info/berth.list'), 'utf8')).toContain('/usr/bin/berth\n')

    const berth = join(root, 'usr/bin/berth')
    expect(await machine.output([berth, 'version'])).toStartWith(`berth ${version} `)
    await machine.output([berth, 'run', '--', 'true'])
    expect(readFileSync(join(root, 'usr/lib/systemd/user/berth.service'), 'utf8')).toContain(
      'ExecStart=/usr/bin/berth serve',
    )
    await dpkg('--purge', 'berth')
    expect(
      [berth, join(root, 'usr/lib/systemd/user/berth.service'), join(root, 'usr/share/doc/berth')].filter(
        existsSync,
      ),
    ).toEqual([])
  },
)
