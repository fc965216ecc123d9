import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ComputeDriver, DriverName } from '../../src/compute/driver.ts'
import { type DriverChoice, localDrivers, selectDriver } from '../../src/compute/drivers.ts'
import { LocalWorkspace } from '../../src/compute/local/workspace.ts'
import { SeatbeltIsolation } from '../../src/compute/seatbelt/isolation.ts'
import { seatbeltProfile } from '../../src/compute/seatbelt/profile.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { selfCommand } from '../../src/runtime/self.ts'

/** An expression of a profile: a list, or a word, a string or `#` and a regular expression. */
type Expression = string | Expression[]

/** Parses the expressions of a profile. Throws if brackets or quotes do not match. */
function parse(text: string): Expression[] {
  const tokens = [...text.matchAll(/;[^\n]*|[()]|#?"(?:[^"\\]|\\.)*"|[^\s()"]+|\s+/g)].map(([token]) => token)
  expect(tokens.join('')).toBe(text)
  const stack: Expression[][] = [[]]
  for (const token of tokens) {
    if (token === '(') stack.push([])
    else if (token === ')') {
      const list = stack.pop() ?? []
      stack.at(-1)?.push(list)
    } else if (!/^[\s;]/.test(token)) stack.at(-1)?.push(token)
  }
  expect(stack).toHaveLength(1)
  return stack[0] ?? []
}

const textOf = (token: Expression | undefined): string =>
  String(token)
    .replace(/^#?"|"$/g, '')
    .replace(/\\(["\\])/g, '$1')

/** Reports whether a profile allows an operation on a path: the last rule that fits decides. */
function allows(profile: string, operation: string, path: string): boolean {
  let verdict = false
  for (const rule of parse(profile)) {
    const [effect, ...rest] = rule as Expression[]
    if (effect !== 'allow' && effect !== 'deny') continue
    const operations = rest.filter((part) => typeof part === 'string')
    const filters = rest.filter((part): part is Expression[] => Array.isArray(part))
    const fits = operations.some(
      (one) => one === 'default' || one === operation || operation.startsWith(String(one).replace(/\*$/, '')),
    )
    if (fits && (filters.length === 0 || filters.some((filter) => matches(filter, path)))) {
      verdict = effect === 'allow'
    }
  }
  return verdict
}

function matches([kind, ...values]: Expression[], path: string): boolean {
  const [value] = values
  if (kind === 'literal') return path === textOf(value)
  if (kind === 'subpath') return `${path}/`.startsWith(`${textOf(value)}/`)
  if (kind === 'regex') return new RegExp(String(value).slice(2, -1)).test(path)
  if (kind === 'require-all') return values.every((filter) => matches(filter as Expression[], path))
  // A terminal that was opened inside has the extension, which no path shows.
  return false
}

const OWN = '/private/var/data/servers/srv_1'
const SPEC = {
  read: ['/Applications/berth', '/private/etc/hosts'],
  list: ['/private/etc/ssl'],
  write: [`${OWN}/workspace`, `${OWN}/tmp`],
  outbound: { mode: 'public', hosts: [] },
} as const

describe('the profile of Seatbelt', () => {
  const profile = seatbeltProfile(SPEC)

  test.each([
    // path, may be read, may be written
    [`${OWN}/workspace/app/index.js`, true, true],
    [`${OWN}/tmp/x`, true, true],
    [`${OWN}/workspace-of-another`, false, false],
    ['/private/var/data/servers/srv_2/workspace/secret', false, false],
    ['/private/var/data/berth.db', false, false],
    ['/Users/me/.ssh/id_ed25519', false, false],
    ['/Users/me/Library/Keychains/login.keychain-db', false, false],
    ['/Users', false, false],
    ['/private/etc/hosts', true, false],
    ['/private/etc/master.passwd', false, false],
    ['/usr/bin/git', true, false],
    ['/System/Library/Frameworks/x', true, false],
    ['/opt/homebrew/Cellar/node/bin/node', true, false],
    ['/opt/homebrew/var/postgres/PG_VERSION', false, false],
    ['/Applications/berth', true, false],
    ['/dev/null', true, false],
    ['/dev/ptmx', true, true],
    ['/dev/ttys003', false, false],
    ['/dev/disk0', false, false],
    ['/private/var/run/docker.sock', false, false],
  ])('%s', (path, read, write) => {
    expect([allows(profile, 'file-read-data', path), allows(profile, 'file-write-create', path)]).toEqual([
      read,
      write,
    ])
  })

  test('devices can be written to, and neither made nor removed', () => {
    expect(allows(profile, 'file-write-data', '/dev/null')).toBe(true)
    expect(allows(profile, 'file-write-unlink', '/dev/null')).toBe(false)
  })

  test('directories on the way to what is shown can be looked at, not listed; a part of a directory is listed', () => {
    for (const path of ['/', '/private', '/private/var/data/servers', OWN])
      expect(allows(profile, 'file-read-metadata', path)).toBe(true)
    expect(allows(profile, 'file-read-metadata', '/Users/me')).toBe(false)
    expect(allows(profile, 'file-read-data', OWN)).toBe(false)
    expect(allows(profile, 'file-read-data', '/private/etc/ssl')).toBe(true)
    expect(allows(profile, 'file-read-data', '/private/etc/ssl/private.key')).toBe(false)
  })

  test('what is not named is denied: the keychain, other programs, scripts of other apps, their variables', () => {
    const text = JSON.stringify(parse(profile))
    expect(parse(profile).slice(0, 2)).toEqual([
      ['version', '1'],
      ['deny', 'default'],
    ])
    for (const word of ['SecurityServer', 'securityd', 'appleevent', 'lsopen', 'procargs', 'job-creation'])
      expect(text).not.toContain(word)
    expect(text).toContain('["allow","signal",["target","same-sandbox"]]')
  })

  test('outbound rules are those that Seatbelt can tell apart', () => {
    const outbound = (mode: 'open' | 'public' | 'list' | 'none', hosts: string[] = []) =>
      [
        ...seatbeltProfile({ ...SPEC, outbound: { mode, hosts } }).matchAll(
          /network-outbound \(remote ip "(.*)"\)/g,
        ),
      ].map(([, to]) => to)
    expect(outbound('none')).toEqual(['localhost:*'])
    expect(outbound('open')).toEqual(['localhost:*', '*:*'])
    expect(outbound('public')).toEqual(['localhost:*', '*:*'])
    expect(outbound('list', ['a.test:443', 'b.test:443', '10.0.0.5:5432'])).toEqual([
      'localhost:*',
      '*:443',
      '*:5432',
    ])
    expect(outbound('list', ['a.test'])).toEqual(['localhost:*', '*:*'])
  })

  test('a path of any characters is that path and no other rule', () => {
    const hostile = '/Users/a "b")\n(allow default) ; \\ (c'
    const hostileProfile = seatbeltProfile({ ...SPEC, write: [hostile] })
    expect(allows(hostileProfile, 'file-write-create', `${hostile}/x`)).toBe(true)
    expect(allows(hostileProfile, 'file-write-create', '/Users/a')).toBe(false)
    expect(parse(hostileProfile).filter((rule) => rule[1] === 'default')).toEqual([['deny', 'default']])
  })
})

test('a server is started by sandbox-exec with a profile of its own directories', async () => {
  const dataDir = mkdtempSync(join(realpathSync(tmpdir()), 'berth-seatbelt-'))
  try {
    const dir = join(dataDir, 'servers', 'srv_1')
    for (const name of ['workspace', 'caches']) mkdirSync(join(dir, name), { recursive: true })
    const options = {
      dataDir,
      self: selfCommand(),
      path: '/usr/bin:/bin',
      variables: {},
      logger: createLogger('silent', () => {}, Date.now),
      outbound: { mode: 'none' as const, hosts: [] },
      machinePorts: [],
      projectPorts: null,
      baseUrl: () => null,
      environment: () => ({}),
      prepareCaches: async () => {},
      provide: () => {},
      allowUnixSockets: false,
      workspace: (path: string) => new LocalWorkspace(path),
    }
    const isolation = new SeatbeltIsolation(options)
    const { argv, env, commandEnv, descriptors } = await isolation.launch({
      id: 'srv_1',
      dir,
      workspace: join(dir, 'workspace'),
      caches: join(dir, 'caches'),
      marker: 'a'.repeat(24),
      limits: { cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 24 },
      groups: [],
    })
    const [program, flag, profile = '', ...command] = argv
    expect([program, flag]).toEqual(['/usr/bin/sandbox-exec', '-p'])
    expect(command).toEqual([...selfCommand().argv, '__sandboxd', 'a'.repeat(24)])
    const tmp = join(dir, 'tmp')
    expect([env.TMPDIR, commandEnv.TMPDIR, existsSync(tmp), descriptors]).toEqual([tmp, tmp, true, undefined])
    for (const path of ['workspace/x', 'caches/x', 'tmp/x'].map((name) => join(dir, name)))
      expect([path, allows(profile, 'file-write-create', path)]).toEqual([path, true])
    for (const path of [
      join(dataDir, 'berth.db'),
      join(dir, 'x'),
      join(dataDir, 'servers/srv_2/workspace/x'),
    ])
      expect([path, allows(profile, 'file-read-data', path)]).toEqual([path, false])
    // sandboxd itself.
    expect(allows(profile, 'file-read-data', selfCommand().argv[0])).toBe(true)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('no system has the isolations of another', () => {
  const names = localDrivers({
    self: selfCommand(),
    path: '',
    dataDir: '/nonexistent',
    logger: createLogger('silent', () => {}, Date.now),
  }).map(({ name }) => name)
  expect(names).toEqual(
    process.platform === 'darwin' ? ['seatbelt', 'none'] : ['bubblewrap', 'landlock', 'none'],
  )
})

test('an engine is chosen before Seatbelt, and Seatbelt before nothing', async () => {
  // What is asked of a driver here is whether it can be used, and those of macOS cannot be made elsewhere.
  const driver = (name: DriverName, available: boolean) =>
    ({
      name,
      probe: async () =>
        available
          ? { available, network: 'shared' as const, notes: [] }
          : { available, reason: '', remedy: '' },
    }) as unknown as ComputeDriver
  const local = [driver('seatbelt', true), driver('none', true)]
  const open = (hasImage: boolean) => async () => ({
    driver: driver('docker', true),
    isLocal: true,
    hasImage: async () => hasImage,
  })
  const chosen = async (wish: Partial<DriverChoice>) =>
    (
      await selectDriver({
        compute: 'auto',
        isolation: 'auto',
        local,
        open: open(true),
        ...wish,
      } as DriverChoice)
    ).driver.name
  expect(await chosen({})).toBe('docker')
  expect(await chosen({ open: open(false) } as unknown as Partial<DriverChoice>)).toBe('seatbelt')
  expect(await chosen({ compute: 'local' })).toBe('seatbelt')
  expect(await chosen({ isolation: 'seatbelt' })).toBe('seatbelt')
  await expect(
    chosen({ compute: 'local', local: [driver('seatbelt', false), driver('none', true)] }),
  ).rejects.toThrow('Nothing isolates servers here.')
})
