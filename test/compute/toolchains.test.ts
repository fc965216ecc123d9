import { describe, expect, test } from 'bun:test'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { selectMachineTools, type ToolPlaces } from '../../src/compute/local/machine-tools.ts'
import { findToolchains, type PrintedVersions, type Toolchain } from '../../src/compute/local/toolchains.ts'
import { link, MAKERS, program, write } from '../support/toolchain-files.ts'

/** What the machine's own programs print: the same for each test. */
const PRINTED: PrintedVersions = new Map()

/** A machine of which only a home and directories of PATH are looked at. */
class Machine implements Disposable {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'berth-toolchains-')))
  readonly home = join(this.root, 'home')
  readonly variables: Record<string, string> = { HOME: this.home }
  path: string[] = []

  readonly at = (path: string): string => join(this.home, path)

  get places(): ToolPlaces {
    const path = [...this.path, '/usr/bin', '/bin'].join(':')
    return { path, variables: this.variables, dataDir: join(this.root, 'data') }
  }

  /** The toolchains below its own directories. */
  async toolchains(): Promise<Toolchain[]> {
    const found = await findToolchains(this.places, { printed: PRINTED })
    return found.filter(({ path }) => path.startsWith(this.root))
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}

type Tool = keyof typeof MAKERS

/** Manager, tool, version, its directory below the home, and what makes it the chosen one. */
const MANAGED: [
  source: string,
  tool: Tool,
  version: string,
  prefix: string,
  choose: ((machine: Machine) => void) | null,
][] = [
  ['pyenv', 'python', '3.12.4', '.pyenv/versions/3.12.4', ({ at }) => write(at('.pyenv/version'), '3.12\n')],
  ['rbenv', 'ruby', '3.3.1', '.rbenv/versions/3.3.1', ({ at }) => write(at('.rbenv/version'), '3.3.1\n')],
  [
    'goenv',
    'go',
    '1.22.1',
    '.goenv/versions/1.22.1',
    ({ variables }) => Object.assign(variables, { GOENV_VERSION: '1.22.1' }),
  ],
  ['nodenv', 'node', '20.1.2', '.nodenv/versions/20.1.2', ({ at }) => write(at('.nodenv/version'), '20.1.2')],
  ['phpenv', 'php', '8.3.1', '.phpenv/versions/8.3.1', ({ at }) => write(at('.phpenv/version'), '8.3.1')],
  ['jenv', 'java', '21.0.1', '.jenv/versions/21.0.1', ({ at }) => write(at('.jenv/version'), '21.0.1')],
  [
    'nvm',
    'node',
    '20.11.1',
    '.nvm/versions/node/v20.11.1',
    ({ at }) => {
      write(at('.nvm/alias/default'), 'lts/*\n')
      write(at('.nvm/alias/lts/*'), 'lts/iron\n')
      write(at('.nvm/alias/lts/iron'), 'v20.11.1\n')
    },
  ],
  [
    'fnm',
    'node',
    '22.0.1',
    '.local/share/fnm/node-versions/v22.0.1/installation',
    ({ at }) =>
      link(at('.local/share/fnm/aliases/default'), at('.local/share/fnm/node-versions/v22.0.1/installation')),
  ],
  [
    'volta',
    'node',
    '18.20.1',
    '.volta/tools/image/node/18.20.1',
    ({ at }) =>
      write(at('.volta/tools/user/platform.json'), '{"node":{"runtime":"18.20.1","npm":null},"yarn":null}'),
  ],
  [
    'asdf',
    'go',
    '1.21.5',
    '.asdf/installs/golang/1.21.5/go',
    ({ at }) => write(at('.tool-versions'), '# own\ngolang 1.21.5\n'),
  ],
  [
    'mise',
    'python',
    '3.11.9',
    '.local/share/mise/installs/python/3.11.9',
    ({ at }) => write(at('.config/mise/config.toml'), '[tools]\npython = "3.11"\n'),
  ],
  [
    'mise',
    'deno',
    '2.1.4',
    '.local/share/mise/installs/deno/2.1.4',
    ({ at }) => write(at('.config/mise/config.toml'), '[tools]\ndeno = {version = "latest"}\n'),
  ],
  [
    'proto',
    'node',
    '20.5.6',
    '.proto/tools/node/20.5.6',
    ({ at }) => write(at('.proto/.prototools'), 'node = "20.5.6"\n'),
  ],
  [
    'SDKMAN',
    'java',
    '17.0.9',
    '.sdkman/candidates/java/17.0.9-tem',
    ({ at }) => link(at('.sdkman/candidates/java/current'), '17.0.9-tem'),
  ],
  [
    'SDKMAN',
    'mvn',
    '3.9.6',
    '.sdkman/candidates/maven/3.9.6',
    ({ at }) => link(at('.sdkman/candidates/maven/current'), at('.sdkman/candidates/maven/3.9.6')),
  ],
  [
    'rustup',
    'cargo',
    '1.90.0',
    '.rustup/toolchains/stable-x86_64-unknown-linux-gnu',
    ({ at }) => write(at('.rustup/settings.toml'), 'version = "12"\ndefault_toolchain = "stable"\n'),
  ],
  ['uv', 'python', '3.13.2', '.local/share/uv/python/cpython-3.13.2-linux-x86_64-gnu', null],
  ['rye', 'python', '3.12.8', '.rye/py/cpython@3.12.8', null],
  ['hatch', 'python', '3.10.9', '.local/share/hatch/pythons/3.10/python', null],
  ['n', 'node', '21.1.1', 'n/n/versions/node/21.1.1', null],
  ['gvm', 'go', '1.19.9', '.gvm/gos/go1.19.9', null],
  ['golang.org/dl', 'go', '1.24.0', 'sdk/go1.24.0', null],
  ["Go's module cache", 'go', '1.25.1', 'go/pkg/mod/golang.org/toolchain@v0.0.1-go1.25.1.linux-amd64', null],
  ['IntelliJ', 'java', '21.0.5', '.jdks/temurin-21.0.5', null],
  ['Gradle', 'gradle', '8.5', '.gradle/wrapper/dists/gradle-8.5-bin/abc/gradle-8.5', null],
  ["Maven's wrapper", 'mvn', '3.9.9', '.m2/wrapper/dists/apache-maven-3.9.9/abc', null],
]

describe('servers see what a version manager has installed', () => {
  test.each(MANAGED)('%s: %s %s in %s', async (source, tool, version, prefix, choose) => {
    using machine = new Machine()
    MAKERS[tool](machine.at(prefix), version)
    const bin = join(machine.at(prefix), 'bin')
    const found = { tool, version, bin, source, path: expect.stringContaining(`${bin}/`) }
    expect(await machine.toolchains()).toMatchObject([found])
    expect(selectMachineTools(machine.places).shown).toContainEqual({
      path: machine.at(prefix),
      real: machine.at(prefix),
    })
    if (choose === null) return
    choose(machine)
    expect(selectMachineTools(machine.places).path.at(-1)).toBe(bin)
  })

  test('in the order of their versions, the chosen one first, which takes the place of the stand-ins', async () => {
    using machine = new Machine()
    for (const version of ['3.9.18', '3.13.0', '3.10.2', '3.13.1']) {
      MAKERS.python(machine.at(`.pyenv/versions/${version}`), version)
    }
    write(machine.at('.pyenv/version'), '3.10.2\n3.9.18\n')
    program(machine.at('.pyenv/shims/python3'), 'a stand-in')
    program(machine.at('.pyenv/bin/pyenv'), 'the manager')
    machine.path = [machine.at('.pyenv/shims'), machine.at('.pyenv/bin')]
    const found = await machine.toolchains()
    expect(found.map(({ version, isDefault }) => [version, isDefault])).toEqual([
      ['3.10.2', true],
      ['3.13.1', false],
      ['3.13.0', false],
      ['3.9.18', false],
    ])
    const { path, leftOut } = selectMachineTools(machine.places)
    expect(path.slice(0, 2)).toEqual(
      ['3.10.2', '3.9.18'].map((version) => machine.at(`.pyenv/versions/${version}/bin`)),
    )
    expect(leftOut).toEqual([{ path: machine.at('.pyenv/bin'), why: 'pyenv itself works only for its user' }])
  })

  test('not what its user has chosen without installing it, and says so', () => {
    using machine = new Machine()
    write(machine.at('.rbenv/version'), '3.9.9\n')
    program(machine.at('.rbenv/shims/ruby'), 'a stand-in')
    machine.path = [machine.at('.rbenv/shims')]
    const [left] = selectMachineTools(machine.places).leftOut
    expect(left?.why).toContain('rbenv: 3.9.9 is not installed')
  })

  test('in a directory that only a variable or PATH names', async () => {
    using machine = new Machine()
    const elsewhere = join(machine.root, 'managers')
    MAKERS.node(join(elsewhere, 'nvm/versions/node/v20.1.1'), '20.1.1')
    MAKERS.ruby(join(elsewhere, 'rbenv/versions/3.4.1'), '3.4.1')
    write(join(elsewhere, 'rbenv/version'), '3.4.1')
    program(join(elsewhere, 'rbenv/shims/ruby'), 'a stand-in')
    machine.variables.NVM_DIR = join(elsewhere, 'nvm')
    machine.path = [join(elsewhere, 'rbenv/shims')]
    const found = await machine.toolchains()
    expect(found.map(({ source, version }) => [source, version])).toEqual([
      ['nvm', '20.1.1'],
      ['rbenv', '3.4.1'],
    ])
    expect(selectMachineTools(machine.places).path[0]).toBe(join(elsewhere, 'rbenv/versions/3.4.1/bin'))
  })
})

describe('servers see tools of PATH', () => {
  test.each(Object.keys(MAKERS) as Tool[])('whole, if their directory is a toolchain: %s', async (tool) => {
    using machine = new Machine()
    const prefix = join(machine.root, 'opt/tool')
    MAKERS[tool](prefix, '9.8.7')
    machine.path = [join(prefix, 'bin')]
    expect(await machine.toolchains()).toMatchObject([
      { tool, version: '9.8.7', isDefault: true, source: 'PATH' },
    ])
    // A single program is in no directory of its own.
    const whole = tool === 'deno' ? join(prefix, 'bin') : prefix
    expect(selectMachineTools(machine.places).shown).toEqual([{ path: whole, real: whole }])
  })

  test('behind links, at the paths of both', async () => {
    using machine = new Machine()
    const prefix = join(machine.root, 'opt/jdk-21')
    MAKERS.java(prefix, '21.0.3')
    MAKERS.node(join(machine.root, 'opt/node'), '20.2.2')
    link(join(machine.root, 'opt/current'), prefix)
    link(join(machine.root, 'local/bin/node'), join(machine.root, 'opt/node/bin/node'))
    machine.path = [join(machine.root, 'opt/current/bin'), join(machine.root, 'local/bin')]
    const { shown } = selectMachineTools(machine.places)
    expect(shown).toContainEqual({ path: prefix, real: prefix })
    expect(shown).toContainEqual({ path: join(machine.root, 'opt/current'), real: prefix })
    expect(shown).toContainEqual({
      path: join(machine.root, 'opt/node'),
      real: join(machine.root, 'opt/node'),
    })
    expect(await machine.toolchains()).toMatchObject([
      { tool: 'java', version: '21.0.3', isDefault: true },
      { tool: 'node', version: '20.2.2', isDefault: true },
    ])
  })

  test('also several versions in one directory, of which only one has the usual name', async () => {
    using machine = new Machine()
    const bin = join(machine.root, 'tools')
    program(join(bin, 'python3.12'), 'Python 3.12.3')
    program(join(bin, 'python3.9'), 'Python 3.9.2')
    link(join(bin, 'python3'), 'python3.9')
    machine.path = [bin]
    expect(await machine.toolchains()).toMatchObject([
      { version: '3.9.2', path: join(bin, 'python3'), bin, isDefault: true },
      { version: '3.12.3', path: join(bin, 'python3.12'), bin: null, isDefault: false },
    ])
  })

  test('without the stand-ins of rustup, whose default takes their place', async () => {
    using machine = new Machine()
    program(machine.at('.cargo/bin/rustup'), 'rustup')
    for (const proxy of ['cargo', 'rustc']) link(machine.at(`.cargo/bin/${proxy}`), 'rustup')
    program(machine.at('.cargo/bin/own-tool'), 'own')
    machine.path = [machine.at('.cargo/bin')]
    expect(selectMachineTools(machine.places).leftOut[0]?.why).toContain('rustup default stable')
    MAKERS.cargo(machine.at('.rustup/toolchains/1.88.0-x86_64-unknown-linux-gnu'), '1.88.0')
    write(machine.at('.rustup/settings.toml'), 'default_toolchain = "1.88.0-x86_64-unknown-linux-gnu"\n')
    const { path, shown } = selectMachineTools(machine.places)
    expect(path.slice(0, 2)).toEqual([
      machine.at('.rustup/toolchains/1.88.0-x86_64-unknown-linux-gnu/bin'),
      machine.at('.cargo/bin'),
    ])
    const inCargo = shown.map(({ path }) => path).filter((path) => path.includes('.cargo'))
    expect(inCargo).toEqual([machine.at('.cargo/bin/own-tool')])
  })
})
