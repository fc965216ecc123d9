import { describe, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { firstLine, type KeyedInfo } from '../support/berth.ts'
import { projectPorts } from '../support/ports.ts'
import { call, command, NO_SPARE_SERVERS } from '../support/serve.ts'
import { link, MAKERS, program, write } from '../support/toolchain-files.ts'
import { bareEnvironment, serve, temporaryFolder } from './command.ts'

/** Begins each secret; its place follows. */
const CANARY = 'canary-of-'

const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin'

/** A machine of a person with toolchains in many places, and a secret in each place that no server may read. */
class Machine implements Disposable {
  readonly #folder = temporaryFolder()
  /** Absolute paths of secrets. */
  readonly secrets: string[] = []
  /** Absolute paths of files that servers need. */
  readonly shown: string[] = []
  readonly path: string[] = []

  get root(): string {
    return this.#folder.path
  }

  get home(): string {
    return join(this.root, 'home')
  }

  /** Writes a secret. */
  hide(...paths: string[]): void {
    for (const path of paths) {
      const absolute = path.startsWith('/') ? path : join(this.root, path)
      write(absolute, `${CANARY}${absolute}\n`)
      this.secrets.push(absolute)
    }
  }

  /** Makes a link to a secret, or to a directory with one. @param secret the secret's path by way of it */
  lead(path: string, target: string, secret = path): void {
    link(join(this.root, path), join(this.root, target))
    this.secrets.push(join(this.root, secret))
  }

  /** Names files that must be readable: without them the search would find nothing for another reason. */
  show(...paths: string[]): void {
    this.shown.push(...paths.map((path) => join(this.root, path)))
  }

  /** Makes a toolchain. @param shown one of its files */
  make(tool: keyof typeof MAKERS, prefix: string, version: string, shown: string): void {
    MAKERS[tool](join(this.root, prefix), version)
    this.show(join(prefix, shown))
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]()
  }
}

function machineWithSecrets(): Machine {
  const machine = new Machine()
  const add = (...directories: string[]): void => {
    machine.path.push(...directories.map((directory) => join(machine.root, directory)))
  }
  machine.hide('private/key', 'private/tool')

  // A home, which is by its files also a Go and on PATH.
  MAKERS.go(machine.home, '1.20.1')
  add('home/bin')
  const ofHome = [
    ...['.ssh/id_ed25519', '.netrc', '.pypirc', '.npmrc', '.bash_history', '.cargo/credentials.toml'],
    ...['.m2/settings.xml', '.gradle/gradle.properties', '.aws/credentials', '.config/gh/hosts.yml'],
    ...['.local/share/keyrings/login', 'src/private/main.go', 'doc/private', 'pkg/private'],
  ]
  machine.hide(...ofHome.map((path) => join('home', path)))

  // Managers, with something of their user's beside the versions.
  machine.make('python', 'home/.pyenv/versions/3.12.1', '3.12.1', 'lib/python3.12/os.py')
  write(join(machine.home, '.pyenv/version'), '3.12.1\n')
  machine.hide(
    'home/.pyenv/notes',
    'home/.pyenv/versions/3.12.1/pip.conf',
    'home/.pyenv/versions/3.12.1/envs/app/.env',
  )
  write(join(machine.home, '.pyenv/versions/app/pyvenv.cfg'), 'home = /usr/bin\n')
  program(join(machine.home, '.pyenv/versions/app/bin/python3'), 'Python 3.12.1')
  machine.hide(
    'home/.pyenv/versions/app/lib/python3.12/site-packages/private.py',
    'home/.pyenv/versions/app/.env',
  )
  // Links of a manager to elsewhere in the home, also to a toolchain.
  machine.lead('home/.pyenv/versions/linked', 'private', 'home/.pyenv/versions/linked/key')
  MAKERS.python(join(machine.home, 'work/python'), '3.13.9')
  machine.hide('home/work/python/lib/python3.13/private.py')
  machine.lead(
    'home/.pyenv/versions/work',
    'home/work/python',
    'home/.pyenv/versions/work/lib/python3.13/private.py',
  )
  machine.make('node', 'home/.nvm/versions/node/v22.1.0', '22.1.0', 'lib/node_modules/npm/package.json')
  machine.hide('home/.nvm/.cache/private', 'home/.nvm/versions/node/v22.1.0/etc/npmrc')
  machine.make(
    'cargo',
    'home/.rustup/toolchains/stable-x86_64-unknown-linux-gnu',
    '1.90.0',
    'lib/rustlib/components',
  )
  machine.hide('home/.rustup/tmp/private')
  program(join(machine.home, '.cargo/bin/rustup'), 'rustup 1.2.3')
  link(join(machine.home, '.cargo/bin/cargo'), 'rustup')
  program(join(machine.home, '.cargo/bin/own'), 'own')
  machine.show('home/.cargo/bin/own')
  add('home/.cargo/bin')
  machine.make('mvn', 'home/.sdkman/candidates/maven/3.9.6', '3.9.6', 'boot/plexus-classworlds.jar')
  machine.hide('home/.sdkman/etc/config', 'home/.sdkman/candidates/maven/3.9.6/conf/settings.xml')
  machine.make('gradle', 'home/.sdkman/candidates/gradle/8.5', '8.5', 'lib/gradle-core-8.5.jar')
  machine.hide('home/.sdkman/candidates/gradle/8.5/init.d/company.gradle')
  machine.make('java', 'home/.sdkman/candidates/java/21.0.2-tem', '21.0.2', 'conf/security/java.security')
  machine.hide('home/.sdkman/candidates/java/21.0.2-tem/conf/management/jmxremote.password')
  machine.make('go', 'home/.asdf/installs/golang/1.22.3/go', '1.22.3', 'src/fmt/print.go')
  machine.hide('home/.asdf/installs/golang/1.22.3/packages/private', 'home/.asdf/installs/other/1/private')

  // Toolchains in directories that others use too.
  MAKERS.node(join(machine.home, '.local'), '20.3.4')
  machine.show('home/.local/lib/node_modules/npm/package.json')
  machine.hide('home/.local/share/private', 'home/.local/state/private', 'home/.local/private')
  add('home/.local/bin')
  machine.make('go', 'opt/go', '1.23.4', 'src/fmt/print.go')
  machine.hide(
    'opt/go/src/example.com/private/main.go',
    'opt/go/pkg/mod/private',
    'opt/go/.git/config',
    'opt/go/private',
  )
  add('opt/go/bin')
  machine.make('java', 'opt/jdk', '17.0.9', 'conf/security/java.security')
  machine.lead('opt/jdk/legal', 'private', 'opt/jdk/legal/key')
  machine.lead('opt/jdk/conf/linked', 'private', 'opt/jdk/conf/linked/key')
  add('opt/jdk/bin')
  // A toolchain around a home.
  MAKERS.java(machine.root, '11.0.1')
  machine.hide('conf/private', 'legal/private')
  add('bin')

  // Almost toolchains, of which bin and lib are shown.
  program(join(machine.root, 'opt/almost-go/bin/gofmt-of-old'), 'old')
  write(join(machine.root, 'opt/almost-go/VERSION'), 'go1.2.3\n')
  machine.show('opt/almost-go/bin/gofmt-of-old')
  machine.hide('opt/almost-go/src/private', 'opt/almost-go/pkg/private')
  add('opt/almost-go/bin')
  program(join(machine.root, 'opt/almost-jdk/bin/java-of-old'), 'old')
  write(join(machine.root, 'opt/almost-jdk/release'), 'VERSION=17\n')
  machine.hide('opt/almost-jdk/conf/private')
  add('opt/almost-jdk/bin')
  program(join(machine.root, 'opt/venv/bin/in-venv'), 'in a virtual environment')
  write(join(machine.root, 'opt/venv/pyvenv.cfg'), 'home = /usr/bin\n')
  machine.show('opt/venv/bin/in-venv')
  machine.hide('opt/venv/.env', 'opt/venv/include/private', 'opt/venv/share/private')
  add('opt/venv/bin')
  program(join(machine.root, 'opt/plain/bin/plain'), 'plain')
  machine.show('opt/plain/bin/plain')
  machine.lead('opt/plain/lib', 'private', 'opt/plain/lib/key')
  machine.lead('opt/plain/bin/linked', 'private/tool')
  add('opt/plain/bin')
  return machine
}

/** Looks from inside a server for secrets: by their own paths, and below the directories that lead to them. */
const searchFor = (
  { secrets, shown }: Pick<Machine, 'secrets' | 'shown'>,
  roots: readonly string[],
): string =>
  [
    `for path in ${[...secrets, ...shown].map((path) => `'${path}'`).join(' ')}; do`,
    '  cat "$path" >/dev/null 2>&1 && echo "readable $path"',
    'done',
    // A directory that cannot be listed may have others in it that can.
    `grep -rsho '${CANARY}[^ ]*' ${[...roots, ...new Set(secrets.map((path) => path.slice(0, path.lastIndexOf('/'))))].map((path) => `'${path}'`).join(' ')} | sort -u`,
    'true',
  ].join('\n')

/** Everything that a server has besides what is its own, the kernel's and /usr, which everybody may read. */
const EVERYWHERE = [
  '/bin',
  '/boot',
  '/etc',
  '/home',
  '/media',
  '/mnt',
  '/opt',
  '/root',
  '/run',
  '/srv',
  '/tmp',
  '/var',
]

describe.each(['bubblewrap', 'landlock'])('a server under %s', (isolation) => {
  test('reads all of a toolchain, and nothing else of homes and of directories that hold one', async () => {
    using machine = machineWithSecrets()
    await using berth = await serve(['--isolation', isolation], {
      env: { HOME: machine.home, PATH: [...machine.path, SYSTEM_PATH].join(':') },
    })
    const id = await berth.server()
    const search = searchFor(machine, [machine.root, ...EVERYWHERE])
    const { body } = await call(berth.info, 'POST', `/servers/${id}/exec`, { command: search })
    expect(body.stdout.split('\n').filter(Boolean)).toEqual(machine.shown.map((path) => `readable ${path}`))
  }, 120_000)

  const canMount = process.getuid?.() === 0 && Bun.which('unshare') !== null
  if (!canMount) console.error('SKIP the search of /etc: it takes root and unshare')
  test.if(canMount)(
    'reads of /etc what languages need, and no key, password or file that only some may read',
    async () => {
      using folder = temporaryFolder()
      const { etc, secrets, shown } = etcWithSecrets(folder.path)
      await using berth = await serveWithEtc(etc, isolation)
      const created = await call(berth.info, 'POST', '/servers', {})
      const search = searchFor({ secrets, shown }, EVERYWHERE)
      const { body } = await call(berth.info, 'POST', `/servers/${created.body.id}/exec`, { command: search })
      expect(body.stdout.split('\n').filter(Boolean)).toEqual(shown.map((path) => `readable ${path}`))
      const listed = await call(berth.info, 'POST', `/servers/${created.body.id}/exec`, {
        command: 'ls /etc/php/8.2/cli/conf.d; ls /etc/maven; cat /etc/php/8.2/cli/conf.d/10-pdo.ini',
      })
      expect(listed.body.stdout).toContain('10-pdo.ini\n')
      expect(listed.body.stdout).toContain('m2.conf\n')
      expect(listed.body.stdout).toContain('extension=pdo')
    },
    120_000,
  )
})

/** Copies /etc, with the directories of languages, and a secret in each place that no server may read. */
function etcWithSecrets(folder: string): { etc: string; secrets: string[]; shown: string[] } {
  const etc = join(folder, 'etc')
  cpSync('/etc', etc, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !/^\/etc\/(?:ssl\/private|shadow)/.test(path),
  })
  const secrets: string[] = []
  const shown: string[] = []
  const at = (path: string): string => join(etc, path.slice('/etc/'.length))
  const hide = (path: string, mode = 0o644): void => {
    write(at(path), `${CANARY}${path}\n`, mode)
    secrets.push(path)
  }
  const show = (path: string, text = 'for everybody'): void => {
    write(at(path), text)
    shown.push(path)
  }
  hide('/etc/ssl/private/server.key')
  hide('/etc/ssl/certs/server.key')
  hide('/etc/ssl/certs/both.pem', 0o600)
  show('/etc/ssl/certs/public.pem')
  hide('/etc/environment')
  hide('/etc/default/app')
  hide('/etc/pip.conf')
  hide('/etc/npmrc')
  hide('/etc/app/config')
  hide('/etc/java-99-openjdk/security/server.key')
  hide('/etc/java-99-openjdk/management/jmxremote.password', 0o600)
  hide('/etc/java-99-openjdk/keys/store', 0o600)
  link(at('/etc/java-99-openjdk/linked'), '/etc/app')
  secrets.push('/etc/java-99-openjdk/linked/config')
  show('/etc/java-99-openjdk/security/java.security')
  hide('/etc/maven/settings.xml')
  show('/etc/maven/m2.conf')
  link(at('/etc/gradle'), '/etc/app')
  secrets.push('/etc/gradle/config')
  hide('/etc/php/8.2/fpm/pool.d/www.conf')
  hide('/etc/php/private/key')
  show('/etc/php/8.2/cli/php.ini')
  show('/etc/php/8.2/mods-available/pdo.ini', 'extension=pdo\n')
  link(at('/etc/php/8.2/cli/conf.d/10-pdo.ini'), '/etc/php/8.2/mods-available/pdo.ini')
  hide('/etc/python3.99/environment')
  return { etc, secrets, shown }
}

/** A berth with another directory as its /etc, in a mount namespace of its own. */
async function serveWithEtc(etc: string, isolation: string): Promise<{ info: KeyedInfo } & AsyncDisposable> {
  const mount = 'mount --bind "$ETC" /etc && exec "$@"'
  const data = temporaryFolder()
  const args = ['serve', '--json', '--port', '0', '--data', data.path, '--isolation', isolation]
  const child = Bun.spawn(
    [
      'unshare',
      '--mount',
      'sh',
      '-c',
      mount,
      'sh',
      ...command,
      ...args,
      '--project-ports',
      projectPorts(),
      ...NO_SPARE_SERVERS,
    ],
    {
      env: { ...bareEnvironment(), PATH: `${SYSTEM_PATH}:/usr/sbin:/sbin`, ETC: etc },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  const stderr = child.stderr.text()
  const line = await firstLine(child.stdout)
  if (line === null) throw new Error(`berth did not start: ${await stderr}`)
  return {
    info: JSON.parse(line),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
      data[Symbol.dispose]()
    },
  }
}
