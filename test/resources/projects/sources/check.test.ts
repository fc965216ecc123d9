import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ProjectSource } from '../../../../src/resources/projects/sources/model.ts'
import { Validator } from '../../../../src/runtime/validation/validate.ts'
import { badRequestOf, World } from './world.ts'

const check = async (source: ProjectSource, upload: Uint8Array | null = null) => {
  await using world = new World()
  return await world.sources.check(source, upload)
}
const git = (url: string, ref?: string): ProjectSource => ({
  type: 'git',
  url,
  ...(ref === undefined ? {} : { ref }),
})

describe('the url of a repository', () => {
  test.each([
    'https://github.com/owner/name',
    'https://user:token@git.example.com:8443/a/b.git',
    'https://git.example.com./a',
    'ssh://git@example.com/a/b.git',
    'ssh://git@example.com:2222/~/a',
    'git@github.com:owner/name.git',
  ])('%s is taken', async (url) => {
    expect(await check(git(url))).toBeNull()
  })

  test.each([
    ['http://example.com/a', 'use https'],
    ['git://example.com/a', 'git:// is not taken'],
    ['ext::sh -c touch% /tmp/x', 'spaces'],
    ['ext::sh', 'use https://'],
    ['fd::17', 'use https://'],
    ['file+ssh://a/b', 'is not taken'],
    ['ftp://example.com/a', 'is not taken'],
    ['javascript:alert(1)', 'relative path'],
    ['./relative', 'relative path'],
    ['../up', 'relative path'],
    ['name', 'relative path'],
    ['', 'relative path'],
    ['--upload-pack=touch /tmp/x', 'spaces'],
    ['--upload-pack=x', 'relative path'],
    ['-oProxyCommand=x', 'relative path'],
    ['ssh://-oProxyCommand=touch/x', 'no'],
    ['ssh://git@-oProxyCommand=x/y', 'no'],
    ['ssh://-oProxyCommand=x@host/y', 'user'],
    ['ssh://git@example.com/-x', 'dash'],
    ['ssh://git@example.com', 'path'],
    ['ssh://git:secret@example.com/a', 'ssh takes no password'],
    ['-x@example.com:path', 'user'],
    ['git@-oProxyCommand=x:path', 'host'],
    ['https://example.com../a', 'host'],
    ['https://example..com/a', 'host'],
    ['git@example.com:--upload-pack=x', 'dash'],
    ['git@ext::sh', 'relative path'],
    ['https://example.com/a\nhost=evil', 'control characters'],
    ['https://example.com\\@evil/a', 'backslashes'],
    ['https://example.com/a?x=1', '"?"'],
    ['https://exa mple/a', 'spaces'],
    ['https://', 'not a valid URL'],
    ['https://user:%zz@example.com/a', 'encodes no character'],
    ['https://user:%0a@example.com/a', 'encodes no character'],
    ['file://host/a', 'this machine only'],
    ['https://127.0.0.1/a', '127.0.0.1 is not one (loopback)'],
    ['https://[::1]/a', 'loopback'],
    ['https://0x7f.1/a', 'loopback'],
    ['https://169.254.169.254/a', 'linkLocal'],
    ['https://localhost/a', 'private network'],
    ['git@localhost:a', 'private network'],
    ['ssh://git@10.0.0.1/a', 'private'],
    ['https://nas.local/a', 'private network'],
  ])('%p is refused before anything runs, with the field', async (url, why) => {
    const message = await badRequestOf(check(git(url)))
    expect(message).toStartWith('"source.url" in the body: ')
    expect(message).toContain(why)
  })

  test('is not repeated in the refusal, since it may hold a credential', async () => {
    for (const url of [
      'http://user:hunter22@example.com/a',
      'ssh://git:hunter22@example.com/a',
      'https://user:hunter22@example.com/a?b',
      'https://user:hunter22@127.0.0.1/a',
    ])
      expect(await badRequestOf(check(git(url)))).not.toContain('hunter22')
  })
})

describe('a reference', () => {
  test.each(['main', 'feature/x', 'v1.0', 'refs/heads/main', 'a'.repeat(40), 'ünï'])(
    '%s is taken',
    async (ref) => {
      expect(new Validator(ProjectSource).fits(git('https://example.com/a', ref))).toBe(true)
      expect(await check(git('https://example.com/a', ref))).toBeNull()
    },
  )

  test.each(
    [
      '--upload-pack=x',
      '-x',
      'a..b',
      'a b',
      'a:b',
      '+a',
      'a^',
      'a~1',
      '@{u}',
      '@',
      'a*',
      'a?',
      'a[b',
      'a\\b',
      '/a',
      'a/',
      'a//b',
      '.a',
      'a/.b',
      'a.lock',
      'a.',
      'a\nb',
      'a\0b',
    ].filter((ref) => ref !== '+a'),
  )('%p is refused by the schema', (ref) => {
    expect(new Validator(ProjectSource).fits(git('https://example.com/a', ref))).toBe(false)
  })
})

describe('a folder of this machine', () => {
  test('is taken below an allowed one, as a path and as file://', async () => {
    await using world = new World()
    world.repo('mine')
    await world.sources.check(git(join(world.repos, 'mine')), null)
    await world.sources.check(git(`file://${world.repos}/mine`), null)
    await world.sources.check(git(`file://localhost${world.repos}/%6dine`), null)
  })

  test('is refused elsewhere, by links too, and without a word on what stands there', async () => {
    await using world = new World()
    mkdirSync(join(world.folder, 'repos-secret'))
    mkdirSync(join(world.folder, 'private'))
    symlinkSync(join(world.folder, 'private'), join(world.repos, 'link'))
    const said = new Set<string>()
    for (const path of ['private', 'none', 'repos-secret', 'repos/../private', 'repos/link', 'repos/../none'])
      said.add(
        await badRequestOf(
          world.sources.check(git(join(world.folder, '.', path).replace('repos/../', 'repos/../')), null),
        ),
      )
    said.add(await badRequestOf(world.sources.check(git(`${world.repos}/../private`), null)))
    said.add(await badRequestOf(world.sources.check(git(`file://${world.repos}/%2e%2e/private`), null)))
    said.add(await badRequestOf(world.sources.check(git('/'), null)))
    expect(said.size).toBe(1)
    expect([...said][0]).toContain('--source-folders')
  })

  test('that does not exist, or is a file, is reported as such where it is allowed', async () => {
    await using world = new World()
    writeFileSync(join(world.repos, 'a.bundle'), '')
    expect(await badRequestOf(world.sources.check(git(`${world.repos}/none`), null))).toContain(
      'no such directory',
    )
    expect(await badRequestOf(world.sources.check(git(`${world.repos}/a.bundle`), null))).toContain('a file')
  })

  test('is refused where no folder is allowed', async () => {
    await using world = new World({ sourceFolders: [] })
    expect(await badRequestOf(world.sources.check(git(world.repos), null))).toContain('--source-folders')
  })
})

describe('an archive', () => {
  const bytes = new Uint8Array([1, 2, 3])

  test('comes in exactly one way: url, data, upload', async () => {
    expect(await check({ type: 'archive', data: 'AQID' })).toEqual(Buffer.from(bytes))
    expect(await check({ type: 'archive' }, bytes)).toBe(bytes)
    expect(await check({ type: 'archive', url: 'https://example.com/a.zip' })).toBeNull()
    expect(await badRequestOf(check({ type: 'archive' }))).toContain('got none')
    expect(await badRequestOf(check({ type: 'archive', data: 'AQID' }, bytes))).toContain('got several')
    expect(
      await badRequestOf(check({ type: 'archive', data: 'AQID', url: 'https://example.com' })),
    ).toContain('got several')
    expect(await badRequestOf(check({ type: 'blank' }, bytes))).toContain('"source.type"')
    expect(await badRequestOf(check(git('https://example.com/a'), bytes))).toContain('"source.type"')
  })

  test('comes over http from this machine or a private network, where that is allowed, and from nowhere else', async () => {
    const addresses: Record<string, string[]> = {
      'example.com': ['93.184.215.14'],
      'mixed.example.com': ['10.0.0.1', '93.184.215.14'],
      'nas.example.com': ['10.0.0.1', 'fd00::1'],
    }
    await using world = new World({ allowLocal: true, resolve: async (name) => addresses[name] ?? [] })
    const take = (url: string) => world.sources.check({ type: 'archive', url }, null)
    for (const host of ['example.com', 'mixed.example.com', '93.184.215.14', '[2606:4700::1111]']) {
      const message = await badRequestOf(take(`http://${host}/a.zip`))
      expect(message).toStartWith(
        '"source.url" in the body: From a public host an archive is fetched over https only.',
      )
      expect(await take(`https://${host}/a.zip`)).toBeNull()
    }
    for (const host of ['nas.example.com', '127.0.0.1:8080', '192.168.1.2', '[::1]', 'not-there.example.com'])
      expect(await take(`http://${host}/a.zip`)).toBeNull()
  })

  test.each([
    'http://169.254.169.254/latest',
    'https://169.254.169.254/latest',
    'http://[fe80::1]/a.zip',
    'http://metadata.example/a.zip',
    'http://both.example/a.zip',
  ])('from %s is refused at once, although local sources are allowed', async (url) => {
    const addresses: Record<string, string[]> = {
      'metadata.example': ['169.254.169.254'],
      'both.example': ['10.0.0.1', 'fe80::1'],
    }
    await using world = new World({ allowLocal: true, resolve: async (name) => addresses[name] ?? [] })
    const message = await badRequestOf(world.sources.check({ type: 'archive', url }, null))
    expect(message).toStartWith('"source.url" in the body: ')
    expect(message).toContain('is not one (linkLocal)')
  })

  test('of a host that does not resolve now is left to the fetch', async () => {
    await using world = new World({ allowLocal: true, resolve: async () => [] })
    expect(await world.sources.check({ type: 'archive', url: 'http://later.example/a.zip' }, null)).toBeNull()
  })

  test.each(['AQI', 'AQID\n', 'A-_D', ' AQID', 'AQID=', 'AR==', 'é'])('of %p is no base64', (data) => {
    expect(new Validator(ProjectSource).fits({ type: 'archive', data })).toBe(false)
  })

  test.each([
    'http://example.com/a.zip',
    'file:///etc/passwd',
    'ftp://example.com/a',
    'a.zip',
    'https:a',
    'https://localhost/a',
    'https://127.0.0.1/',
    'https://[::ffff:127.0.0.1]/',
    'https://2130706433/',
    'https://169.254.169.254/latest',
    'data:,x',
  ])('from %s is refused at once', async (url) => {
    expect(await badRequestOf(check({ type: 'archive', url }))).toStartWith('"source.url" in the body: ')
  })
})
