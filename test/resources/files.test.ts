import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests } from '../support/berth.ts'

let server: string
const berth = await berthForTests()

const fresh = async () => {
  server = await berth.server()
}
const list = async (query = '') => (await berth.call('GET', `/servers/${server}/files${query}`)).body.files
const read = (path: string) => berth.call('GET', `/servers/${server}/files?path=${encodeURIComponent(path)}`)
const write = (path: string, content: string, rest = {}) =>
  berth.call('PUT', `/servers/${server}/files`, { path, content, ...rest })
const remove = (path: string) =>
  berth.call('DELETE', `/servers/${server}/files?path=${encodeURIComponent(path)}`)

describe('files', () => {
  test('PUT makes parent folders; GET gives the same back; the list has it', async () => {
    await fresh()
    expect(await write('a/b/c.txt', 'héllo\n')).toMatchObject({
      status: 201,
      body: { path: 'a/b/c.txt', written: true },
    })
    expect((await read('a/b/c.txt')).body).toEqual({ path: 'a/b/c.txt', content: 'héllo\n' })
    expect((await read('/workspace/a/b/c.txt')).body.content).toBe('héllo\n')
    expect(await list()).toEqual(['a/b/c.txt'])
  })

  test('lists recursively and sorted, without .git and node_modules unless all are wanted', async () => {
    await fresh()
    for (const path of ['z', 'node_modules/x/y', '.git/HEAD', 'src/a.ts', '.env']) await write(path, '')
    expect(await list()).toEqual(['.env', 'src/a.ts', 'z'])
    expect(await list('?all=true')).toEqual(['.env', '.git/HEAD', 'node_modules/x/y', 'src/a.ts', 'z'])
  })

  test('a manifest describes files by their content, and leaves out what is not there', async () => {
    await fresh()
    await write('app/a.txt', 'hello')
    await write('other.txt', 'x')
    await berth.exec(server, 'ln -s a.txt app/link && chmod +x other.txt')
    const manifest = (body: object) => berth.call('POST', `/servers/${server}/files/manifest`, body)
    const sha256 = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'
    const hello = { path: 'a.txt', size: 5, sha256, executable: false }
    expect((await manifest({ directory: 'app' })).body).toEqual({
      files: [hello],
      links: [{ path: 'link', target: 'a.txt' }],
    })
    expect((await manifest({ directory: 'app', paths: ['a.txt', 'none'] })).body).toEqual({
      files: [hello],
      links: [],
    })
    const { body } = await manifest({})
    expect(
      body.files.map((file: { path: string; executable: boolean }) => [file.path, file.executable]),
    ).toEqual([
      ['app/a.txt', false],
      ['other.txt', true],
    ])
    expect((await manifest({ directory: 'none' })).status).toBe(404)
    expect((await manifest({ paths: ['../x'] })).status).toBe(400)
  })

  test('bytes that are not text survive as base64', async () => {
    await fresh()
    await write('bytes', '/wD+gA==', { encoding: 'base64' })
    expect((await read('bytes')).body).toEqual({ path: 'bytes', content: '/wD+gA==', encoding: 'base64' })
    expect((await berth.exec(server, 'od -An -tx1 bytes')).stdout.trim()).toBe('ff 00 fe 80')
  })

  test('a byte order mark is kept', async () => {
    await fresh()
    await write('bom', '\uFEFFx')
    expect((await read('bom')).body.content).toBe('\uFEFFx')
  })

  test('work while the server sleeps, and do not wake it', async () => {
    await fresh()
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    await write('asleep', 'x')
    expect(await list()).toEqual(['asleep'])
    expect((await berth.call('GET', `/servers/${server}`)).body.server.status).toBe('sleeping')
  })

  test('a reader sees the old content or the new, never a part', async () => {
    await fresh()
    const contents = ['a', 'b'].map((letter) => letter.repeat(1_000_000))
    await write('file', contents[0] ?? '')
    const writes = Array.from({ length: 10 }, (_, n) => write('file', contents[n % 2] ?? ''))
    const reads = Array.from({ length: 20 }, () => read('file'))
    for (const { body } of await Promise.all(reads)) expect(contents).toContain(body.content)
    await Promise.all(writes)
  })

  test('DELETE removes a file, and a folder whole', async () => {
    await fresh()
    await write('dir/a', '')
    await write('dir/b/c', '')
    expect((await remove('dir/a')).body).toEqual({ path: 'dir/a', deleted: true })
    expect((await remove('dir')).status).toBe(200)
    expect(await list()).toEqual([])
    expect((await remove('dir')).status).toBe(404)
  })

  test('GET of a folder and of nothing is 404', async () => {
    await fresh()
    await write('dir/a', '')
    for (const path of ['dir', 'nothing', '', '.', '/workspace']) expect((await read(path)).status).toBe(404)
    expect((await read('dir')).body.message).toBe(
      '"dir" is a directory, not a file. Leave "path" out to list all files.',
    )
  })

  const OUTSIDE = [
    '../x',
    'a/../../x',
    '/etc/passwd',
    '/workspace/../x',
    '/workspacex/y',
    'link/passwd',
    'direct',
  ]
  test.each(OUTSIDE)('%s leaves the workspace: 400 on PUT and DELETE, 404 on GET', async (path) => {
    await fresh()
    await berth.exec(server, 'ln -s /etc link; ln -s /etc/passwd direct; mkdir a')
    expect((await read(path)).status).toBe(404)
    expect((await write(path, 'x')).status).toBe(400)
    expect((await remove(path)).status).toBe(400)
  })

  test('links that stay inside are followed', async () => {
    await fresh()
    await berth.exec(
      server,
      'mkdir real; echo x > real/file; ln -s real link; ln -s /workspace/real/file direct',
    )
    expect((await read('link/file')).body.content).toBe('x\n')
    await write('link/new', 'y')
    expect((await read('real/new')).body.content).toBe('y')
  })

  test.each([
    ['NUL', 'a\0b'],
    ['5,000 characters', 'x'.repeat(5_000)],
    ['a component of 256 bytes', 'x'.repeat(256)],
    ['a folder', 'dir'],
    ['the workspace itself', '.'],
    ['a file as a folder', 'dir/a/b'],
  ])('PUT to %s is 400 and changes nothing', async (_name, path) => {
    await fresh()
    await write('dir/a', 'kept')
    const { status, body } = await write(path, 'x')
    expect(status).toBe(400)
    expect(body.error).toBe('bad_request')
    expect(await list()).toEqual(['dir/a'])
  })

  test('names with newlines and spaces are names', async () => {
    await fresh()
    await write('a\nb c', 'x')
    expect(await list()).toEqual(['a\nb c'])
    expect((await read('a\nb c')).body.content).toBe('x')
  })

  test('content that is not base64 is refused', async () => {
    await fresh()
    for (const content of ['!!!', '!!!!', '/wD', '/w=', '/wD+==']) {
      expect((await write('x', content, { encoding: 'base64' })).status).toBe(400)
    }
    expect((await write('x', '\ud800')).status).toBe(400)
    expect((await write('x', 'eA', { encoding: 'rot13' })).status).toBe(400)
    expect(await list()).toEqual([])
  })

  test('over the storage of the tier is 400 and says how much is left', async () => {
    await fresh()
    // A hole costs nothing on this disk; fallocate takes room without writing it.
    const filled = await berth.exec(server, 'fallocate -l 4999000000 full && echo ok')
    if (filled.stdout !== 'ok\n') return console.error(`SKIP: this disk has no room for it: ${filled.stderr}`)
    const { status, body } = await write('more', 'x'.repeat(2_000_000))
    expect(status).toBe(400)
    expect(body.message).toMatch(/\d+ of 5000000000 bytes are left/)
    await write('small', 'x'.repeat(700_000))
    expect((await write('small', 'y'.repeat(700_000))).status).toBe(201)
    await berth.exec(server, 'rm full')
    expect((await write('more', 'x'.repeat(2_000_000))).status).toBe(201)
  })

  test('a workspace that someone removed from the disk is a failure of the backend, with the remedy', async () => {
    await fresh()
    await write('kept', '1')
    const workspace = join(berth.dataDir, 'servers', server, 'workspace')
    renameSync(workspace, `${workspace}-aside`)
    const gone = {
      status: 502,
      body: {
        error: 'compute_backend_error',
        message: `The server's files are gone: there is no directory ${workspace}. Put it back, delete the server, or give it an empty one: berth servers recover.`,
      },
    }
    expect(await berth.call('GET', `/servers/${server}/files`)).toMatchObject(gone)
    expect(await read('kept')).toMatchObject(gone)
    expect(await write('new', '2')).toMatchObject(gone)
    expect(await remove('kept')).toMatchObject(gone)
    renameSync(`${workspace}-aside`, workspace)
    expect((await read('kept')).body.content).toBe('1')
  })

  test('a workspace that is a link, as in a data directory from elsewhere, leads nowhere', async () => {
    await fresh()
    const workspace = join(berth.dataDir, 'servers', server, 'workspace')
    const elsewhere = `${workspace}-elsewhere`
    mkdirSync(elsewhere)
    writeFileSync(join(elsewhere, 'secret'), 'of the machine')
    renameSync(workspace, `${workspace}-aside`)
    symlinkSync(elsewhere, workspace)
    const gone = { status: 502, body: { error: 'compute_backend_error' } }
    expect(await berth.call('GET', `/servers/${server}/files`)).toMatchObject(gone)
    expect(await read('secret')).toMatchObject(gone)
    expect(await write('new', '2')).toMatchObject(gone)
    expect(await remove('secret')).toMatchObject(gone)
    expect(readdirSync(elsewhere)).toEqual(['secret'])
    unlinkSync(workspace)
    renameSync(`${workspace}-aside`, workspace)
    rmSync(elsewhere, { recursive: true })
  })
})
