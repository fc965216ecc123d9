import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readAuthorities, readMachineRegistries } from '../../../src/hosting/registries/machine-registries.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-machine-'))
})
afterEach(() => rmSync(root, { recursive: true }))

/** Reads the settings of a machine with these files, below `home` and `etc`. */
function machine(files: Record<string, string>, environment: Record<string, string> = {}) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return readMachineRegistries(settings(environment))
}

const settings = (environment: Record<string, string> = {}) => ({
  environment,
  home: join(root, 'home'),
  etc: join(root, 'etc'),
})

const addresses = ({ mounts }: ReturnType<typeof machine>): Record<string, string> =>
  Object.fromEntries(mounts.map(({ name, address }) => [name, address]))

const PUBLIC = {
  pypi: 'https://pypi.org/simple',
  go: 'https://proxy.golang.org',
  crates: 'https://index.crates.io',
  rubygems: 'https://rubygems.org',
  'gradle-plugins': 'https://plugins.gradle.org/m2',
  maven: 'https://repo.maven.apache.org/maven2',
}
const MIRROR = '<mirror><id>m</id><mirrorOf>OF</mirrorOf><url>https://maven.example/m2/</url>REST</mirror>'
const mirror = (of: string, rest = ''): string =>
  `<settings><mirrors>${MIRROR.replace('OF', of).replace('REST', rest)}</mirrors></settings>`

test('a machine without settings uses the public registries', () => {
  const found = machine({})
  expect(addresses(found)).toEqual(PUBLIC)
  expect(found).toMatchObject({ goProxy: '{go},direct', mavenMirrorOf: 'central', leftOut: [] })
})

describe('the address is read from', () => {
  test.each<[string, Record<string, string>, Record<string, string>, Record<string, string>]>([
    [
      'pip’s variable',
      {},
      { PIP_INDEX_URL: 'https://py.example/simple/' },
      { pypi: 'https://py.example/simple' },
    ],
    ['uv’s variable', {}, { UV_DEFAULT_INDEX: 'https://py.example/s' }, { pypi: 'https://py.example/s' }],
    [
      'pip’s file, with the section of installs before the global one',
      {
        'etc/pip.conf':
          '[global]\nindex-url = https://global.example/\n[install]\nindex_url: https://py.example/simple\n',
      },
      {},
      { pypi: 'https://py.example/simple' },
    ],
    [
      'a user’s pip before the machine’s',
      {
        'etc/pip.conf': '[global]\nindex-url=https://a.example/',
        'home/.config/pip/pip.conf': '[global]\nindex-url=https://b.example/x',
      },
      {},
      { pypi: 'https://b.example/x' },
    ],
    [
      'uv’s file',
      {
        'home/.config/uv/uv.toml':
          '[[index]]\nurl = "https://extra.example"\n[[index]]\nurl = "https://py.example/s"\ndefault = true\n',
      },
      {},
      { pypi: 'https://py.example/s' },
    ],
    [
      'Bundler’s file before that of gem',
      {
        'home/.bundle/config': '---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: "https://gems.example/g/"\n',
        'home/.gemrc': '---\n:sources:\n- https://other.example/\n',
      },
      {},
      { rubygems: 'https://gems.example/g' },
    ],
    [
      'gem’s file',
      { 'etc/gemrc': ':sources:\n  - "https://gems.example/"\n' },
      {},
      { rubygems: 'https://gems.example' },
    ],
    [
      'Go’s file',
      { 'home/.config/go/env': 'GOFLAGS=-x\nGOPROXY=https://go.example/p,off\n' },
      {},
      { go: 'https://go.example/p' },
    ],
    [
      'Cargo’s file, through a registry',
      {
        'home/.cargo/config.toml':
          '[source.crates-io]\nreplace-with = "mine"\n[registries.mine]\nindex = "sparse+https://crates.example/i/"\n',
      },
      {},
      { crates: 'https://crates.example/i' },
    ],
    [
      'Maven’s file',
      { 'home/.m2/settings.xml': mirror('external:*,!corp') },
      {},
      { maven: 'https://maven.example/m2' },
    ],
    [
      'Maven’s file of the machine',
      { 'etc/maven/settings.xml': mirror('central') },
      {},
      { maven: 'https://maven.example/m2' },
    ],
  ])('%s', (_, files, environment, expected) => {
    const found = machine(files, environment)
    expect(addresses(found)).toEqual({ ...PUBLIC, ...expected })
    expect(found.leftOut).toEqual([])
  })

  test('several proxies of Go, which stay apart, with what is between them', () => {
    const found = machine({}, { GOPROXY: 'https://a.example|https://b.example/x,direct' })
    expect(found.goProxy).toBe('{go}|{go-2},direct')
    expect(addresses(found)).toMatchObject({ go: 'https://a.example', 'go-2': 'https://b.example/x' })
    expect(machine({}, { GOPROXY: 'direct' }).goProxy).toBe('direct')
  })

  test.each([
    ['one of another repository', mirror('jcenter')],
    ['one that is not for the central one', mirror('*,!central')],
    ['one that blocks', mirror('external:*', '<blocked>true</blocked>')],
    [
      'one in a comment',
      mirror('*').replace('<mirrors>', '<mirrors><!--').replace('</mirrors>', '--></mirrors>'),
    ],
  ])('no mirror of Maven that does not serve the central repository: %s', (_, xml) => {
    expect(addresses(machine({ 'home/.m2/settings.xml': xml }))).toEqual(PUBLIC)
  })
})

describe('a credential is never read:', () => {
  test.each<[string, Record<string, string>, Record<string, string>]>([
    ['pip', { 'etc/pip.conf': '[global]\nindex-url = https://ann:hunter2@py.example/simple\n' }, {}],
    ['pip by a variable', {}, { PIP_INDEX_URL: 'https://ann:hunter2@py.example/simple' }],
    ['gem', { 'home/.gemrc': ':sources:\n- https://ann:hunter2@py.example/\n' }, {}],
    ['Go', {}, { GOPROXY: 'https://ann:hunter2@py.example,direct' }],
    [
      'Maven',
      { 'home/.m2/settings.xml': mirror('*').replace('maven.example', 'ann:hunter2@py.example') },
      {},
    ],
  ])('an address of %s with a user is left out, and named', (_, files, environment) => {
    const found = machine(files, environment)
    expect(JSON.stringify(found)).not.toContain('hunter2')
    expect(found.leftOut).toEqual([expect.stringContaining('(py.example) has a user in its address')])
    expect(found.mounts.map(({ address }) => address).join()).not.toContain('example')
  })

  test('of files with authorities only certificates are taken', () => {
    const certificate = '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----'
    mkdirSync(join(root, 'etc'))
    writeFileSync(
      join(root, 'ca.pem'),
      `-----BEGIN PRIVATE KEY-----\nkey\n-----END PRIVATE KEY-----\n${certificate}\n`,
    )
    const found = readAuthorities(settings({ PIP_CERT: join(root, 'ca.pem') }))
    expect(found).toContain(certificate)
    expect(found.join()).not.toContain('PRIVATE')
  })
})
