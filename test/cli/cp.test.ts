import { expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Header, pack } from 'tar-stream'
import { encodeFrame, FRAME_KINDS, FRAMES_TYPE } from '../../src/resources/exec/frames.ts'
import { until } from '../support/processes.ts'
import { command as berthCommand } from '../support/serve.ts'
import { run } from './command.ts'
import { copies } from './copies.ts'

const { berth, server, here, at, words, run: inDirectory, onServer } = copies()

const cp = (source: string, target: string, stdin?: Uint8Array) =>
  inDirectory(['cp', source, target], { ...(stdin && { stdin }) })

/** Makes a directory `tree` with all kinds of entries, whose names are hard. */
function makeTree(): void {
  mkdirSync(here('tree/sub'), { recursive: true })
  mkdirSync(here('tree/empty'))
  writeFileSync(here('tree/run'), 'x')
  chmodSync(here('tree/run'), 0o751)
  writeFileSync(here('tree/sub/a b\nc😀'), Buffer.from([0xff, 0]))
  writeFileSync(here('tree/-n'), '')
  symlinkSync('run', here('tree/link'))
  symlinkSync('/etc/passwd', here('tree/absolute'))
  chmodSync(here('tree/sub'), 0o555)
}

/** Everything of a directory, as text. */
const described = (path: string): string[] =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .map((name) => {
      const full = join(path, name)
      const stats = lstatSync(full)
      if (stats.isSymbolicLink()) return `${name} -> ${readlinkSync(full)}`
      const mode = (stats.mode & 0o777).toString(8)
      return stats.isDirectory() ? `${name}/ ${mode}` : `${name} ${mode} ${readFileSync(full, 'hex')}`
    })
    .sort()

test('a directory goes to a server and back with names, bytes, modes and links', async () => {
  makeTree()
  expect(await cp('tree', at('there'))).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await cp(at('there'), 'back')).toMatchObject({ exitCode: 0, stderr: '' })
  expect(described(here('back'))).toEqual(described(here('tree')))
  expect(readdirSync(here()).sort()).toEqual(['back', 'tree'])
})

test('a directory that is not writable is named', async () => {
  await onServer('mkdir ro && chmod 555 ro')
  writeFileSync(here('ro.txt'), 'x')
  const { exitCode, stderr } = await cp('ro.txt', at('ro/x'))
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: 'berth: The server could not do it: ro/x cannot be written: its directory is not writable.\n',
  })
})

test('what is there decides: a new name, or into it; /. is what is in a directory', async () => {
  mkdirSync(here('src'))
  writeFileSync(here('src/f'), 'f')
  await cp('src', at('new'))
  await cp('src', at('new'))
  await cp('src/.', at('flat'))
  await cp('src/.', at('flat'))
  await cp('src/f', at('flat/g'))
  await cp('src/f', at('made/'))
  await cp('src/f', at(''))
  expect((await onServer('find . -type f | LC_ALL=C sort')).trim().split('\n')).toEqual(
    ['./f', './flat/f', './flat/g', './made/f', './new/f', './new/src/f'].sort(),
  )
  await cp(at('new'), 'local')
  await cp(at('new'), 'local')
  await cp(at('new/src/.'), 'local')
  await cp(at('f'), 'local/made/')
  expect(readdirSync(here('local'), { recursive: true }).sort()).toEqual(
    ['f', 'made', 'made/f', 'new', 'new/f', 'new/src', 'new/src/f', 'src', 'src/f'].sort(),
  )
})

test('a directory that is not here is not made on the way to the target', async () => {
  await onServer('mkdir -p d; echo x > d/f')
  for (const source of ['d/f', 'd'])
    for (const target of ['no/where', 'no/where/']) {
      const { exitCode, stderr } = await cp(at(source), target)
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringContaining(`There is no directory ${here('no')} on this machine.`),
      })
    }
  expect(readdirSync(here())).toEqual([])
})

test('- is standard input and output of a single file, byte for byte', async () => {
  const bytes = new Uint8Array(300_000).map((_, index) => index * 7)
  expect((await cp('-', at('deep/in.bin'), bytes)).stdout).toMatch(
    new RegExp(`^Copied to ${server()}:deep/in\\.bin: 300\\.0 KB(?: in \\S+ s)?\\.\n$`),
  )
  expect((await cp(at('/workspace/deep/in.bin'), '-')).bytes).toEqual(bytes)
})

test('files are replaced, others stay, and modes follow', async () => {
  await onServer('mkdir d; echo old > d/f; echo kept > d/other')
  writeFileSync(here('f'), 'new')
  chmodSync(here('f'), 0o700)
  await cp('f', at('d'))
  expect(await onServer('cat d/f d/other; stat -c %a d/f; ls -A d')).toBe('newkept\n700\nf\nother\n')
  mkdirSync(here('d'))
  writeFileSync(here('d/mine'), 'mine')
  writeFileSync(here('d/f'), 'older')
  await cp(at('d/.'), 'd')
  expect(described(here('d')).map((line) => line.split(' ')[0])).toEqual(['f', 'mine', 'other'])
  expect(readFileSync(here('d/f'), 'utf8')).toBe('new')
})

test('a sleeping server is woken, a large sparse file comes whole', async () => {
  await berth().run(['servers', 'stop', server()])
  writeFileSync(here('sparse'), 'begin')
  truncateSync(here('sparse'), 100_000_000)
  expect(await cp('sparse', at('sparse'))).toMatchObject({ exitCode: 0 })
  expect((await onServer('stat -c %s sparse; head -c 5 sparse')).trim()).toBe('100000000\nbegin')
})

test.each([
  ['missing', ':', 'There is no "missing" here.'],
  [':missing', 'x', 'There is no "missing" on the server.'],
  ['tree', ':file', 'file on the server is not a directory'],
  [':folder', 'plain', 'is not a directory, and folder is one'],
  [':folder', '-', 'is a directory. For a tar of it'],
  ['plain', ':file/', 'is a file, not a directory'],
  ['plain', 'other', 'Name a server on one side'],
  [':a', ':b', 'Both are on a server'],
])('%s to %s is refused with the reason, and nothing is left', async (source, target, reason) => {
  makeTree()
  writeFileSync(here('plain'), '')
  await onServer('mkdir folder; echo x > file')
  const { exitCode, stderr } = await cp(source, target)
  expect(exitCode).toBeGreaterThan(0)
  expect(stderr).toContain(reason)
  expect(readdirSync(here()).sort()).toEqual(['plain', 'tree'])
  expect(await onServer('ls -A')).toBe('file\nfolder\n')
})

test('reports what a server cannot take in the words of the server', async () => {
  writeFileSync(here('f'), 'new')
  const { exitCode, stderr } = await cp('f', at('/proc/berth-cp'))
  expect(exitCode).toBe(1)
  expect(stderr).toStartWith('berth: The server could not do it: ')
})

test('reports a full server in a sentence, and leaves no part of a file', async () => {
  writeFileSync(here('f'), new Uint8Array(2_000_000))
  await berth().run(['faults', 'server', server(), 'disk_full'])
  const { exitCode, stderr } = await cp('f', at('f'))
  await berth().run(['faults', 'lift', server(), 'disk_full'])
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(
    /^berth: The server could not do it: .*(storage is full|storage counts as full).*\n$/,
  )
  expect(await onServer('ls -A')).toBe('')
})

test('Ctrl-C ends it, and leaves no part on the server', async () => {
  const argv = [...berthCommand, ...words('cp', '-', at('whole'))]
  const child = Bun.spawn(argv, { cwd: here(), stdin: 'pipe', stdout: 'ignore', stderr: 'inherit' })
  child.stdin.write('begun')
  await child.stdin.flush()
  const parts = () => onServer('cat .berth-cp-* 2>/dev/null')
  await until(async () => (await parts()) === 'begun', 'the copy has begun')
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  await until(async () => (await onServer('ls -A')) === '', 'the part is gone')
})

/** An instance whose server answers a copy of a directory with this archive. */
async function hostile(...entries: (Partial<Header> & { name: string; content?: string })[]) {
  const tar = pack()
  for (const { content = '', ...header } of entries) tar.entry(header, content)
  tar.finalize()
  const archive = await new Response(tar as unknown as ReadableStream).bytes()
  const frames = (bytes: Uint8Array) =>
    new Response(
      Buffer.concat([
        encodeFrame(FRAME_KINDS.stdout, bytes),
        encodeFrame(FRAME_KINDS.exit, Buffer.from('{"exitCode":0}')),
      ]),
      { headers: { 'content-type': FRAMES_TYPE } },
    )
  await using instance = Bun.serve({
    port: 0,
    fetch: (request) =>
      frames(request.url.includes('tar') ? archive : new TextEncoder().encode('directory\n')),
  })
  const connection = ['--base-url', instance.url.href, '--api-key', 'sk_live_x']
  return await run(['cp', ...connection, 'srv_01m82ycb03gefhdnmtqgq5h7z7:x', 'target'], { cwd: here() })
}

test('an answer without end to the look at a path is given up, and kept by nobody', async () => {
  const frame = encodeFrame(FRAME_KINDS.stdout, new Uint8Array(64 * 1024).fill(0x79))
  const hungUp = Promise.withResolvers<void>()
  await using instance = Bun.serve({
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(frame),
          cancel: () => hungUp.resolve(),
        }),
        { headers: { 'content-type': FRAMES_TYPE } },
      ),
  })
  const connection = ['--base-url', instance.url.href, '--api-key', 'sk_live_x']
  const outcome = await run(['cp', ...connection, 'srv_01m82ycb03gefhdnmtqgq5h7z7:x', 'target'], {
    cwd: here(),
  })
  expect(outcome.exitCode).toBe(1)
  expect(outcome.stderr).toContain('The server describes the path in no known form')
  await hungUp.promise
})

test.each([
  ['..', [{ name: '../outside/f', content: 'x' }]],
  ['an absolute name', [{ name: '/tmp/berth-cp-outside', content: 'x' }]],
  [
    'a link to write through',
    [
      { name: './l', type: 'symlink', linkname: '../../outside' },
      { name: './l/f', content: 'x' },
    ],
  ],
  ['a hard link that leads out', [{ name: './h', type: 'link', linkname: '../../outside/secret' }]],
  ['a device', [{ name: './null', type: 'character-device' }]],
] as [string, (Partial<Header> & { name: string; content?: string })[]][])(
  'a server cannot write outside of the target: %s',
  async (_, entries) => {
    mkdirSync(here('outside'))
    writeFileSync(here('outside/secret'), 'secret')
    const { exitCode, stderr } = await hostile(...entries)
    expect(exitCode).toBe(1)
    expect(stderr).toContain('was not copied')
    expect(described(here())).toEqual([
      'outside/ 755',
      `outside/secret 644 ${Buffer.from('secret').toString('hex')}`,
    ])
    expect(existsSync('/tmp/berth-cp-outside')).toBe(false)
  },
)

test('a link here that leads out of an existing target is not followed', async () => {
  mkdirSync(here('target'))
  mkdirSync(here('outside'))
  symlinkSync('../outside', here('target/sub'))
  await onServer('mkdir -p d/sub; echo x > d/sub/f')
  const { exitCode, stderr } = await cp(at('d/.'), 'target')
  expect(exitCode).toBe(1)
  expect(stderr).toContain('is not a directory here')
  expect(readdirSync(here('outside'))).toEqual([])
})
