import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { testCache } from '../support/kubernetes/executable.ts'
import type { OwnNetwork } from './network.ts'
import type { Ended, Machine } from './support.ts'

/** Where roots are kept from one run to the next. */
const CACHE = testCache()

/** The user that a person is in a root. */
const PERSON = { id: 1000, home: '/home/person' }

/**
 * Makes a layer of packages above Debian's smallest system, and that system first, unless they are there. The one lock is for
 * test files that run beside each other.
 */
const MAKE_LAYER = `
set -e
exec 9>lock
flock 9
if [ ! -d minbase ]; then
  rm -rf minbase.new
  debootstrap --variant=minbase "$SUITE" minbase.new "$ARCHIVE"
  chroot minbase.new useradd --create-home --uid ${PERSON.id} --home-dir ${PERSON.home} --shell /bin/bash person
  printf '#!/bin/sh\\nexit 101\\n' >minbase.new/usr/sbin/policy-rc.d
  chmod +x minbase.new/usr/sbin/policy-rc.d
  mv minbase.new minbase
fi
if [ $# -gt 0 ] && [ ! -d "$LAYER" ]; then
  rm -rf new
  mkdir -p new/files new/work new/root
  mount -t overlay -o "lowerdir=$PWD/minbase,upperdir=$PWD/new/files,workdir=$PWD/new/work" berth-tests new/root
  cp /etc/resolv.conf new/root/etc/
  chroot new/root apt-get -qq update
  DEBIAN_FRONTEND=noninteractive chroot new/root \\
    apt-get -qq -y -o Dpkg::Options::=--force-unsafe-io -o APT::Install-Recommends=false install "$@"
  chroot new/root apt-get clean
  umount new/root
  mv new/files "$LAYER"
  rm -rf new
fi
`

/** Returns the directory of the layer of packages; of none, that of the smallest system. */
const layerOf = (packages: readonly string[]): string =>
  join(place, packages.length === 0 ? 'minbase' : packages.join('+'))

/** Makes a layer, and the one below it, unless they are kept. */
async function keepLayer(machine: Machine, packages: readonly string[]): Promise<void> {
  mkdirSync(place, { recursive: true })
  // The directory for temporary files of the tests is not in the root.
  const env = { SUITE: suite, ARCHIVE: archive() ?? '', LAYER: layerOf(packages), TMPDIR: '/tmp' }
  // Mounts end with their namespace, whatever happens.
  await machine.output(['unshare', '--mount', 'sh', '-c', MAKE_LAYER, 'sh', ...packages], { cwd: place, env })
}

/** Reads a value of /etc/os-release; an empty text if there is none. */
const ofSystem = (name: string): string =>
  new RegExp(`^${name}="?([^"\\n]*)`, 'm').exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? ''

const suite = ofSystem('VERSION_CODENAME')
const place = join(CACHE, 'roots', suite)

/** Returns the address that this machine has packages of its suite from. */
function archive(): string | undefined {
  const format = ['--format', '$(REPO_URI)', `Codename: ${suite}`, 'Component: main', 'Created-By: Packages']
  return Bun.spawnSync(['apt-get', 'indextargets', ...format])
    .stdout.toString()
    .split('\n')[0]
}

/** Returns why no root can be made on this machine; null if nothing is known that is in the way. */
export function whyNoRoot(): string | null {
  if (process.getuid?.() !== 0) return 'only root can make one'
  const lacking = ['debootstrap', 'bwrap', 'ip', 'openssl', 'flock'].filter(
    (name) => Bun.which(name) === null,
  )
  if (lacking.length > 0) return `there is no ${lacking.join(', no ')}`
  if (ofSystem('ID') !== 'debian' || !archive())
    return 'it is made of packages of Debian, which this machine does not use'
  return null
}

/** What a root is made of. */
interface RootFacts {
  readonly machine: Machine
  readonly network: OwnNetwork
  /** Packages of Debian that its person has. */
  readonly packages: readonly string[]
  /** Files of this machine that are there too, by their path in the root. */
  readonly shared?: Readonly<Record<string, string>>
}

/** How a script runs in a root. */
interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly asRoot?: boolean
  readonly shell?: string
  readonly lent?: readonly string[]
}

/**
 * Debian's smallest system with the packages of one person, in a network of its own. What is changed in it is a directory of
 * the test, and the programs of a command end with it.
 */
export class BareRoot {
  readonly #facts: RootFacts
  readonly #directory: string
  /** Its layers below what is changed, the highest first. */
  readonly #layers: string[]

  private constructor(facts: RootFacts, name: string) {
    this.#facts = facts
    this.#directory = join(facts.machine.path, name)
    const part = (name: string): string => join(this.#directory, name)
    for (const name of ['changed', 'work', 'root']) mkdirSync(part(name), { recursive: true })
    const lower = [layerOf(facts.packages), layerOf([])].filter(existsSync)
    this.#layers = lower
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(part(`changed/${path}`)), { recursive: true })
      writeFileSync(part(`changed/${path}`), text)
    }
    write('etc/hosts', '127.0.0.1 localhost github.com\n')
    const bundle = 'etc/ssl/certs/ca-certificates.crt'
    const own = lower.map((layer) => join(layer, bundle)).find(existsSync)
    if (own !== undefined) write(bundle, readFileSync(own, 'utf8') + facts.network.authority)
  }

  /** Makes a root, and its layers if they are not kept yet. @param name of its directory below that of the machine */
  static async make(name: string, facts: RootFacts): Promise<BareRoot> {
    await keepLayer(facts.machine, facts.packages)
    return new BareRoot(facts, name)
  }

  /** Copies a file or a directory of this machine to a path of the root. */
  give(source: string, path: string): void {
    cpSync(source, join(this.#directory, 'changed', path), { recursive: true })
  }

  /**
   * Runs a script of a shell in the home of its person, or as root there.
   *
   * @param options `lent` is packages that are there for this script alone
   */
  async run(
    script: string,
    { env = {}, asRoot = false, shell = 'sh', lent = [] }: RunOptions = {},
  ): Promise<Ended> {
    const { machine, network, shared = {} } = this.#facts
    if (lent.length > 0) await keepLayer(machine, lent)
    const [own = '', ...below] = this.#layers
    const lower = [...new Set([own, ...(lent.length > 0 ? [layerOf(lent)] : []), ...below])]
    const [changed, work, mounted] = ['changed', 'work', 'root'].map((part) =>
      join(this.#directory, part),
    ) as [string, string, string]
    const options = `lowerdir=${lower.join(':')},upperdir=${changed},workdir=${work}`
    const binds = Object.entries(shared).flatMap(([path, source]) => ['--bind', source, path])
    const given = {
      PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
      LANG: 'C.UTF-8',
      HOME: PERSON.home,
      ...env,
    }
    const variables = Object.entries(given).flatMap(([name, value]) => ['--setenv', name, value])
    const id = String(PERSON.id)
    const person = asRoot
      ? []
      : ['setpriv', `--reuid=${id}`, `--regid=${id}`, '--clear-groups', '--inh-caps=-all']
    return machine.run([
      ...[...network.within, 'sh', '-c', 'mount -t overlay -o "$0" berth-tests "$1" && shift && exec "$@"'],
      ...[options, mounted, 'bwrap', '--bind', mounted, '/', '--dev', '/dev', '--proc', '/proc', ...binds],
      ...['--unshare-pid', '--unshare-ipc', '--die-with-parent', '--new-session', '--clearenv', ...variables],
      ...['--chdir', PERSON.home, ...person, shell, '-ec', script],
    ])
  }

  /** Runs a script that has to succeed, and returns what it printed. */
  async output(script: string, options: RunOptions = {}): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run(script, options)
    if (exitCode !== 0) throw new Error(`exit code ${exitCode} in a bare root: ${stderr}${stdout}`)
    return stdout
  }

  /** Lists the files of the root with size and time of the last change, and its directories. */
  async list(): Promise<Map<string, string>> {
    // Of a directory the time changes with what is in it.
    const script = "find / -xdev -type d -printf '%p\\n' -o -printf '%p %s %T@\\n'"
    const lines = (await this.output(script, { asRoot: true })).trimEnd().split('\n')
    return new Map(lines.map((line) => [line.split(' ')[0] ?? '', line]))
  }
}

/** Returns the paths that were added, changed or removed between two lists of a root. */
export function differences(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): string[] {
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths].filter((path) => before.get(path) !== after.get(path)).sort()
}
