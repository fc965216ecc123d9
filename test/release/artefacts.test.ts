import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { release, root, version } from './facts.ts'
import { lacks, Machine } from './support.ts'

const git = (...args: string[]): string => Bun.spawnSync(['git', ...args], { cwd: root }).stdout.toString()

test('SHA256SUMS has the hash of every file that is published', async () => {
  using machine = new Machine()
  await machine.output(['sha256sum', '--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: release })
  const listed = readFileSync(join(release, 'SHA256SUMS'), 'utf8').match(/(?<= {2}).*/g) ?? []
  const files = [...new Bun.Glob('**/*').scanSync(release)].filter(
    (file) => !file.startsWith('repositories/'),
  )
  expect(listed.toSorted()).toEqual(files.filter((file) => file !== 'SHA256SUMS').sort())
})

test('the archive and the zip have the same files, and the executable prints the licences of all that is in it', async () => {
  using machine = new Machine()
  const name = `berth-${version}-linux-x64`
  for (const [place, command] of [
    ['tar', ['tar', '-xzf', join(release, `${name}.tar.gz`)]],
    ['zip', ['python3', '-m', 'zipfile', '-e', join(release, `${name}.zip`), '.']],
  ] as const) {
    mkdirSync(join(machine.path, place))
    await machine.output([...command], { cwd: join(machine.path, place) })
  }
  const compared = ['diff', '-r', 'tar', 'zip']
  expect(await machine.output(compared)).toBe('')
  const berth = join(machine.path, 'tar', name, 'berth')
  const printed = await machine.output([berth, 'licenses'])
  expect(printed).toBe(readFileSync(join(release, 'THIRD-PARTY-LICENSES.txt'), 'utf8'))
  const bill = JSON.parse(readFileSync(join(release, `berth-${version}.cdx.json`), 'utf8'))
  for (const { name: part, version: at } of bill.components)
    expect(printed.toLowerCase()).toContain(`${part} ${at}`.toLowerCase())
  // Of the executable, of Bun, and of the dashboard's bundle.
  for (const part of ['elysia ', 'preact ', 'JavaScriptCore', 'SQLite', 'GNU LIBRARY GENERAL PUBLIC LICENSE'])
    expect(printed).toContain(part)
})

test('the archive runs on a root without Node.js and Bun, as an ordinary program', async () => {
  using machine = new Machine()
  const bwrap = Bun.which('bwrap')
  if (lacks(bwrap === null ? 'the archive on a bare root: there is no bwrap' : null)) return
  const name = `berth-${version}-linux-x64`
  await machine.output(['tar', '-xzf', join(release, `${name}.tar.gz`)])
  // A root of the C library and a shell alone.
  const bare = join(machine.path, 'root')
  for (const directory of ['bin', 'lib64', 'tmp', 'proc', 'dev'])
    mkdirSync(join(bare, directory), { recursive: true })
  cpSync('/lib64/ld-linux-x86-64.so.2', join(bare, 'lib64/ld-linux-x86-64.so.2'), { dereference: true })
  const libraries = ['libc.so.6', 'libpthread.so.0', 'libdl.so.2', 'libm.so.6']
  for (const library of libraries)
    cpSync(`/lib/x86_64-linux-gnu/${library}`, join(bare, 'lib64', library), { dereference: true })
  for (const program of ['dash', 'true'])
    cpSync(`/bin/${program}`, join(bare, 'bin', program), { dereference: true })
  symlinkSync('dash', join(bare, 'bin/sh'))
  cpSync(join(machine.path, name, 'berth'), join(bare, 'bin/berth'))
  const inside = [
    'bwrap',
    '--bind',
    bare,
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--setenv',
    'LD_LIBRARY_PATH',
    '/lib64',
    '--setenv',
    'TMPDIR',
    '/tmp',
  ]
  const printed = await machine.output([...inside, '/bin/berth', 'version'])
  expect(printed).toStartWith(`berth ${version} `)
  await machine.output([...inside, '/bin/berth', 'run', '--isolation', 'none', '--', '/bin/true'])
})

describe('the executable for macOS', () => {
  test('is a Mach-O file with a signature whose hashes are right', async () => {
    using machine = new Machine()
    const name = `berth-${version}-darwin-arm64`
    await machine.output(['tar', '-xzf', join(release, `${name}.tar.gz`)])
    const file = readFileSync(join(machine.path, name, 'berth'))
    expect(file.readUInt32LE(0)).toBe(0xfeedfacf)
    const { checked, wrong } = pageHashes(file)
    expect(wrong).toBe(0)
    expect(checked).toBeGreaterThan(1_000)
  })
})

/** Compares the pages of a Mach-O file with the code directory of its signature (xnu, cs_blobs.h). */
function pageHashes(file: Buffer): { checked: number; wrong: number } {
  const LC_CODE_SIGNATURE = 0x1d
  const CODE_DIRECTORY = 0xfade0c02
  let at = 32
  for (let left = file.readUInt32LE(16); file.readUInt32LE(at) !== LC_CODE_SIGNATURE; left -= 1) {
    if (left === 0) throw new Error('There is no signature.')
    at += file.readUInt32LE(at + 4)
  }
  const signature = file.subarray(file.readUInt32LE(at + 8))
  const blobs = Array.from({ length: signature.readUInt32BE(8) }, (_, index) =>
    signature.subarray(signature.readUInt32BE(16 + index * 8)),
  )
  const directory = blobs.find((blob) => blob.readUInt32BE(0) === CODE_DIRECTORY)
  if (directory === undefined) throw new Error('The signature has no code directory.')
  const first = directory.readUInt32BE(16)
  const count = directory.readUInt32BE(28)
  const limit = directory.readUInt32BE(32)
  const [size = 0, type, , page = 0] = directory.subarray(36, 40)
  expect(type).toBe(2)
  let wrong = 0
  for (let index = 0; index < count; index += 1) {
    const bytes = file.subarray(index << page, Math.min((index + 1) << page, limit))
    const expected = directory.subarray(first + index * size, first + (index + 1) * size)
    if (!createHash('sha256').update(bytes).digest().equals(expected)) wrong += 1
  }
  return { checked: count, wrong }
}

const isDirty = git('status', '--porcelain') !== ''
test.skipIf(lacks(isDirty ? 'a second build of the release: there are changes without a commit' : null))(
  'another checkout, with another umask, home and time zone, gives the same bytes',
  async () => {
    using machine = new Machine()
    // On the same file system as node_modules, of which it gets links.
    const place = join(root, 'dist/another checkout')
    rmSync(place, { recursive: true, force: true })
    try {
      await machine.output(['git', 'clone', '--quiet', '--no-hardlinks', root, place])
      await machine.output(['git', 'checkout', '--quiet', git('rev-parse', 'HEAD').trim()], { cwd: place })
      await machine.output(['cp', '-al', join(root, 'node_modules'), join(place, 'node_modules')])
      const out = join(place, 'dist/elsewhere')
      const script = 'umask 077 && scripts/release --only linux-x64 --out "$0"'
      const env = { TZ: 'Pacific/Auckland', LANG: 'tr_TR.UTF-8' }
      await machine.output(['sh', '-c', script, out], { cwd: place, env })
      const hash = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')
      const shared = [...new Bun.Glob('**/*{linux-x64,manylinux_2_17_x86_64,amd64,cdx}*').scanSync(out)]
      expect(shared.length).toBe(6)
      const differing = shared.filter((file) => hash(join(out, file)) !== hash(join(release, file)))
      expect(differing).toEqual([])
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  },
  // A whole build, beside other tests.
  400_000,
)

test('a release leaves no file of its making behind', () => {
  expect(existsSync(join(release, '.work'))).toBe(false)
  expect(readdirSync(release).filter((name) => name.startsWith('.'))).toEqual([])
})
