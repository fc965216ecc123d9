/**
 * Builds the parts of a Kubernetes cluster as one executable from Go modules, or finds the one built before. As a program it
 * prints the path and the time that it took: CI builds before the tests, which would fail beside it.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** What `.ci/run` prints that building may take on two processors, in minutes: with no module there, and with all. */
const BUDGET_MINUTES = 16

/** Programs of the system that a cluster is made with, and the Debian packages that have them. */
const PROGRAMS: Readonly<Record<string, string>> = {
  containerd: 'containerd',
  runc: 'runc',
  ctr: 'containerd',
  ip: 'iproute2',
  nsenter: 'util-linux',
  unshare: 'util-linux',
  openssl: 'openssl',
  debootstrap: 'debootstrap',
}

/** Where the plugins for networks of containers are, from containernetworking-plugins. */
export const NETWORK_PLUGINS = '/usr/lib/cni'

/** The directory of what tests build once and use for long. */
export const testCache = (): string => process.env.BERTH_TEST_CACHE ?? join(homedir(), '.cache/berth-tests')

/** Returns why this machine cannot run a cluster, as a sentence; null if it can. */
export function missingForCluster(): string | null {
  if (process.platform !== 'linux') return 'A cluster needs Linux.'
  if (process.getuid?.() !== 0) return 'A cluster needs root.'
  const missing = Object.keys(PROGRAMS).filter((program) => Bun.which(program) === null)
  if (!existsSync(join(NETWORK_PLUGINS, 'bridge'))) missing.push(NETWORK_PLUGINS)
  if (missing.length > 0) {
    const packages = new Set(missing.map((name) => PROGRAMS[name] ?? 'containernetworking-plugins'))
    return `${missing.join(', ')} is missing: apt-get install ${[...packages].join(' ')}.`
  }
  if (Bun.which('go') === null) return 'Go is missing, which builds the cluster.'
  return null
}

/** Returns the path that the executable has once it is built. */
export function clusterPath(): string {
  const go = Bun.spawnSync(['go', 'env', 'GOVERSION'], { cwd: import.meta.dir })
  const hash = createHash('sha256').update(go.stdout)
  for (const file of ['go.mod', 'go.sum', 'main.go']) hash.update(readFileSync(join(import.meta.dir, file)))
  return join(testCache(), `kubernetes-${hash.digest('hex').slice(0, 16)}`)
}

/** Returns the path of the executable; builds it if there is none of its hash, which takes up to a quarter of an hour. */
export async function clusterExecutable(): Promise<string> {
  const path = clusterPath()
  if (existsSync(path)) return path
  mkdirSync(testCache(), { recursive: true })
  const unfinished = `${path}.${process.pid}`
  const build = Bun.spawn(
    ['go', 'build', '-trimpath', '-buildvcs=false', '-ldflags', linkerFlags(), '-o', unfinished, '.'],
    {
      cwd: import.meta.dir,
      // Without cgo it needs no compiler for C, and is the same on each machine.
      env: { ...process.env, CGO_ENABLED: '0' },
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  )
  if ((await build.exited) !== 0) throw new Error('the executable of the cluster could not be built')
  renameSync(unfinished, path)
  return path
}

/** Without a version of its own, the API server would be one of a Kubernetes 0.0. */
function linkerFlags(): string {
  const [, version = ''] =
    /^require k8s\.io\/kubernetes (v[\d.]+)$/m.exec(readFileSync(join(import.meta.dir, 'go.mod'), 'utf8')) ??
    []
  const [major = '', minor] = version.slice(1).split('.')
  const values = {
    gitVersion: version,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'clean',
    gitCommit: 'none',
  }
  const flags = Object.entries({ ...values, buildDate: '1970-01-01T00:00:00Z' }).map(
    ([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`,
  )
  return ['-s', '-w', ...flags].join(' ')
}

if (import.meta.main) {
  const reason = missingForCluster()
  if (reason === null) {
    const began = performance.now()
    const path = await clusterExecutable()
    const minutes = (performance.now() - began) / 60_000
    console.log(`${path}: ${minutes.toFixed(1)} of ${BUDGET_MINUTES} minutes`)
  } else console.log(`The tests on a cluster are skipped. ${reason}`)
}
