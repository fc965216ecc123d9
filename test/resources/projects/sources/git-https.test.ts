import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SourcesOptions } from '../../../../src/resources/projects/sources/sources.ts'
import { makeAuthority } from '../../../support/authority.ts'
import { gitServer } from './git-server.ts'
import { sentenceOf, World } from './world.ts'

const authority = makeAuthority()
/** The name is in no name service: only who connects to the address that was checked gets there. */
const tls = authority.issue('DNS:git.test,IP:127.0.0.1')

/** A world whose `git.test` is this machine, trusted by a CA file as berth is given it. */
function httpsWorld(options: Partial<SourcesOptions> = {}): World {
  const world: World = new World({
    allowLocal: true,
    resolve: async () => ['127.0.0.1'],
    ...options,
    environment: {
      PATH: process.env.PATH,
      get SSL_CERT_FILE() {
        const file = join(world.folder, 'ca.pem')
        writeFileSync(file, authority.ca)
        return file
      },
      ...options.environment,
    },
  })
  return world
}

const PASSWORD = 'pässwörd/with+odd:chars'
const IN_URL = encodeURIComponent(PASSWORD)

describe('a repository over https', () => {
  test('is fetched from the address that was checked, by branch, tag and commit', async () => {
    await using world = httpsWorld()
    const repo = world.repo('mine')
    repo.git('tag', 'v1')
    const id = repo.git('rev-parse', 'HEAD')
    await using server = await gitServer({ root: world.repos, tls })
    const url = `https://git.test:${server.port}/mine`
    for (const ref of [undefined, 'trunk', 'v1', id]) {
      await world.fetch({ type: 'git', url, ...(ref ? { ref } : {}) })
      expect(world.text('a.txt')).toBe('one')
    }
    expect(new Set(server.asked.map(({ host }) => host))).toEqual(new Set([`git.test:${server.port}`]))
    expect(readFileSync(world.at('.git/config'), 'utf8')).toContain(url)
  })

  test('whose certificate nobody trusts is refused, with the remedy', async () => {
    await using world = httpsWorld({ environment: { SSL_CERT_FILE: undefined } })
    world.repo('mine')
    await using server = await gitServer({ root: world.repos, tls })
    const message = await sentenceOf(
      world.fetch({ type: 'git', url: `https://git.test:${server.port}/mine` }),
    )
    expect(message).toContain('SSL_CERT_FILE')
    expect(server.asked).toEqual([])
    world.expectNothing()
  })

  test('is refused where any address of its name is private, and nothing is asked', async () => {
    for (const addresses of [['127.0.0.1'], ['93.184.215.14', '10.0.0.1'], ['169.254.169.254'], []]) {
      await using world = httpsWorld({ allowLocal: false, resolve: async () => addresses })
      world.repo('mine')
      await using server = await gitServer({ root: world.repos, tls })
      await sentenceOf(world.fetch({ type: 'git', url: `https://git.test:${server.port}/mine` }))
      expect(server.asked).toEqual([])
      world.expectNothing()
    }
  })

  test('that the server says is elsewhere is not followed, and the sentence says so', async () => {
    await using world = httpsWorld()
    world.repo('mine')
    await using elsewhere = await gitServer({ root: world.repos, tls })
    await using server = await gitServer({
      root: world.repos,
      tls,
      instead: ({ url }, response) => {
        response.writeHead(301, { location: `https://127.0.0.1:${elsewhere.port}${url}` }).end()
        return true
      },
    })
    const message = await sentenceOf(
      world.fetch({ type: 'git', url: `https://git.test:${server.port}/mine` }),
    )
    expect(message).toContain('redirects, which is not followed')
    expect(elsewhere.asked).toEqual([])
    world.expectNothing()
  })

  test('that does not exist, or is not git, is reported as such', async () => {
    await using world = httpsWorld()
    await using server = await gitServer({ root: world.repos, tls })
    const url = `https://git.test:${server.port}/none`
    expect(await sentenceOf(world.fetch({ type: 'git', url }))).toContain('no git repository at the url')
    await using page = await gitServer({
      root: world.repos,
      tls,
      instead: (_, response) => {
        response.end('<html>')
        return true
      },
    })
    await sentenceOf(world.fetch({ type: 'git', url: `https://git.test:${page.port}/x` }))
    world.expectNothing()
  })
})

describe('credentials in the url', () => {
  test('open the repository and stay in no log, argument, variable, setting or staged file', async () => {
    await using world = httpsWorld()
    world.repo('mine')
    await using server = await gitServer({ root: world.repos, tls, credentials: `user:${PASSWORD}` })
    // A git that writes down how it was called, in the place of process lists.
    const bin = join(world.folder, 'bin')
    mkdirSync(bin)
    writeFileSync(
      join(bin, 'git'),
      `#!/bin/sh\n{ echo "$@"; env; cat /proc/*/cmdline 2>/dev/null | tr '\\0' ' '; } >> ${world.folder}/seen\nexec ${Bun.which('git')} "$@"`,
      { mode: 0o755 },
    )
    const environment = { PATH: `${bin}:${process.env.PATH}`, SSL_CERT_FILE: join(world.folder, 'ca.pem') }
    writeFileSync(environment.SSL_CERT_FILE, authority.ca)
    await using other = httpsWorld({ environment })
    await other.fetch({ type: 'git', url: `https://user:${IN_URL}@git.test:${server.port}/mine` })
    expect(other.text('a.txt')).toBe('one')

    const basic = Buffer.from(`user:${PASSWORD}`).toString('base64')
    const kept = readdirSync(other.at('.'), { recursive: true, encoding: 'utf8', withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    const seen = readFileSync(join(world.folder, 'seen'), 'utf8')
    expect(seen).toContain('ls-remote')
    for (const secret of [PASSWORD, IN_URL, basic, Buffer.from(PASSWORD).toString('base64')]) {
      expect(seen.includes(secret)).toBe(false)
      expect(other.lines.join('\n').includes(secret)).toBe(false)
      expect(kept.filter((text) => text.includes(secret))).toEqual([])
    }
    expect(readFileSync(other.at('.git/config'), 'utf8')).toContain(
      `url = https://git.test:${server.port}/mine\n`,
    )
    expect(server.asked.at(-1)?.authorization).toBe(`Basic ${basic}`)
  })

  test('that are wrong or missing are reported without a prompt, and not shown', async () => {
    await using world = httpsWorld()
    world.repo('mine')
    await using server = await gitServer({ root: world.repos, tls, credentials: 'user:right-one' })
    for (const userinfo of ['', 'user:wrong-one@', 'wrong-token@']) {
      const url = `https://${userinfo}git.test:${server.port}/mine`
      const message = await sentenceOf(world.fetch({ type: 'git', url }))
      expect(message).toContain('wants credentials')
      expect(message).not.toMatch(/wrong-/)
      expect(world.lines.join('\n')).not.toMatch(/wrong-/)
    }
    world.expectNothing()
  })

  test('that a server repeats are masked in what is reported', async () => {
    await using world = httpsWorld()
    await using server = await gitServer({
      root: world.repos,
      tls,
      instead: ({ authorization = '' }, response) => {
        const [, token = ''] = Buffer.from(authorization.slice(6), 'base64').toString().split(':')
        response.writeHead(403, { 'content-type': 'text/plain' }).end(`refused ${token} ${authorization}\n`)
        return true
      },
    })
    const url = `https://user:repeated-token@git.test:${server.port}/mine`
    const message = await sentenceOf(world.fetch({ type: 'git', url }))
    const said = [message, ...world.lines].join('\n')
    expect(said).toContain('***')
    expect(said).not.toContain('repeated-token')
    expect(said).not.toContain(Buffer.from('user:repeated-token').toString('base64'))
  })

  test('of the machine are not used: no helper, no netrc', async () => {
    await using world = httpsWorld()
    world.repo('mine')
    await using server = await gitServer({ root: world.repos, tls, credentials: 'user:right-one' })
    const home = join(world.folder, 'home')
    mkdirSync(home)
    writeFileSync(join(home, '.netrc'), 'machine git.test login user password right-one')
    writeFileSync(join(home, '.git-credentials'), `https://user:right-one@git.test:${server.port}`)
    writeFileSync(join(home, '.gitconfig'), '[credential]\n helper = store\n')
    const environment = { PATH: process.env.PATH, HOME: home, SSL_CERT_FILE: join(world.folder, 'ca.pem') }
    writeFileSync(environment.SSL_CERT_FILE, authority.ca)
    await using other = httpsWorld({ environment })
    const url = `https://git.test:${server.port}/mine`
    expect(await sentenceOf(other.fetch({ type: 'git', url }))).toContain('wants credentials')
  })
})

test('a repository over ssh is asked for with no key, command or setting of the machine but the agent', async () => {
  await using world = new World()
  const bin = join(world.folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\n{ echo "$@"; env; } > ${world.folder}/seen\nexit 255`, {
    mode: 0o755,
  })
  const environment = {
    PATH: `${bin}:${process.env.PATH}`,
    SSH_AUTH_SOCK: '/run/agent',
    GIT_SSH: '/evil',
    GIT_SSH_COMMAND: '/evil',
    https_proxy: 'http://proxy',
    AWS_SECRET_ACCESS_KEY: 'secret',
  }
  await using other = new World({ environment, resolve: async () => ['93.184.215.14'] })
  await sentenceOf(other.fetch({ type: 'git', url: 'git@git.example.com:owner/name.git' }))
  const seen = readFileSync(join(world.folder, 'seen'), 'utf8')
  expect(seen).toContain('SSH_AUTH_SOCK=/run/agent')
  for (const option of [
    '-F /dev/null',
    'StrictHostKeyChecking=yes',
    'BatchMode=yes',
    'IdentityFile=none',
    'ProxyCommand=none',
    'HostName=93.184.215.14',
    'HostKeyAlias=git.example.com',
  ])
    expect(seen).toContain(option)
  expect(seen).not.toMatch(/secret|\/evil|https_proxy/)
  await using local = new World({ environment, resolve: async () => ['127.0.0.1'] })
  expect(await sentenceOf(local.fetch({ type: 'git', url: 'git@git.example.com:a' }))).toContain('127.0.0.1')
})

test('a repository over ssh is asked for at the first address that accepts a connection', async () => {
  await using world = new World()
  const bin = join(world.folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\necho "$@" > ${world.folder}/seen\nexit 255`, { mode: 0o755 })
  using listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  await using other = new World({
    allowLocal: true,
    environment: { PATH: `${bin}:${process.env.PATH}` },
    resolve: async () => ['127.0.0.77', '127.0.0.1', '::1'],
  })
  const url = `ssh://git@Git.example.com:${listener.port}/owner/name.git`
  await sentenceOf(other.fetch({ type: 'git', url }))
  const seen = readFileSync(join(world.folder, 'seen'), 'utf8')
  expect(seen).toContain('-o HostName=127.0.0.1 ')
  expect(seen).toContain(`-o HostKeyAlias=[git.example.com]:${listener.port} `)
})

test('where berth is given a proxy, git asks it for https and looks no name up by itself', async () => {
  const asked: string[] = []
  using proxy = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, data) {
        asked.push(data.toString().split('\r\n')[0] ?? '')
        socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
      },
    },
  })
  const environment = { PATH: process.env.PATH, https_proxy: `http://127.0.0.1:${proxy.port}` }
  const resolve = async (): Promise<string[]> => {
    throw new Error('looked up')
  }
  await using world = new World({ environment, resolve })
  await sentenceOf(world.fetch({ type: 'git', url: 'https://git.example.com/mine' }))
  expect(asked).toEqual(['CONNECT git.example.com:443 HTTP/1.1'])
  expect(await sentenceOf(world.fetch({ type: 'git', url: 'https://127.0.0.1/mine' }))).toContain('loopback')
  // curl takes the name for exempt with its dot as well.
  await using exempt = new World({ environment: { ...environment, no_proxy: 'git.example.com.' }, resolve })
  const message = await sentenceOf(exempt.fetch({ type: 'git', url: 'https://git.example.com/mine' }))
  expect(message).toContain('does not resolve')
})
