import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { missingIn, TOUR } from '../examples/tour.ts'
import { until } from '../support/processes.ts'
import { BareRoot, differences, whyNoRoot } from './bare-root.ts'
import { owner, readmeCommands, release, version } from './facts.ts'
import { OwnNetwork } from './network.ts'
import { lacks, Machine, timed } from './support.ts'

const image = `${owner}/berth:${version}`
const file = join(release, `berth-${version}-image-linux-x64.tar.gz`)
const reason = !existsSync(file)
  ? 'the image for containers: it was not built, which takes root, apt-get and dockerd'
  : Bun.which('dockerd') === null
    ? 'the image for containers: there is no dockerd'
    : null
const isSkipped = lacks(reason)

const machine = new Machine()
const socket = join(machine.path, 'docker.sock')
/** The engine's bridge and addresses are out of reach of others. */
let network: OwnNetwork | null = null
let daemon: Bun.Subprocess | null = null

// `ip netns exec` mounts /sys anew, without control groups; the engine wants those of version 1 or the one tree of version 2.
const START = `
if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
  if grep -q cgroup2 /proc/mounts && ! awk '$4 == 1 && $2 != 0' /proc/cgroups | grep -q .; then
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
  else
    mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
    for name in $(awk 'NR > 1 && $4 == 1 { print $1 }' /proc/cgroups); do
      mkdir /sys/fs/cgroup/$name
      mount -t cgroup -o $name cgroup /sys/fs/cgroup/$name 2>/dev/null || rmdir /sys/fs/cgroup/$name
    done
  fi
fi
exec dockerd --data-root "$0/data" --exec-root "$0/exec" --pidfile "$0/pid" -H "unix://$0/docker.sock" >"$0/log" 2>&1
`

const docker = (...args: string[]) => machine.run(['/usr/bin/docker', '-H', `unix://${socket}`, ...args])
const dockerOutput = async (...args: string[]): Promise<string> => {
  const { exitCode, stdout, stderr } = await docker(...args)
  if (exitCode !== 0) throw new Error(`docker ${args.join(' ')} exited with ${exitCode}: ${stderr}${stdout}`)
  return stdout.trim()
}

/** Starts a container, and returns what it printed once berth is ready or has ended. */
async function start(name: string, ...options: string[]): Promise<string> {
  await dockerOutput('run', '--detach', '--name', name, ...options, image)
  let printed = ''
  await until(
    async () => {
      const { stdout, stderr } = await docker('logs', name)
      printed = stdout + stderr
      return /is ready after|^berth: /m.test(printed)
    },
    `berth in the container ${name}`,
    60_000,
  )
  return printed
}

beforeAll(async () => {
  if (isSkipped) return
  network = await OwnNetwork.make(machine)
  daemon = network.start(['sh', '-c', START, machine.path])
  const log = join(machine.path, 'log')
  await until(
    async () => (await docker('version')).exitCode === 0 || daemon?.exitCode !== null,
    'the engine of Docker',
    60_000,
  )
  if (daemon.exitCode !== null)
    throw new Error(`dockerd has ended: ${existsSync(log) ? readFileSync(log, 'utf8') : ''}`)
  await dockerOutput('load', '--input', file)
}, 180_000)

afterAll(async () => {
  if (daemon !== null) {
    const containers = (await docker('ps', '--all', '--quiet')).stdout.split('\n').filter(Boolean)
    if (containers.length > 0) await docker('rm', '--force', '--volumes', ...containers)
    const pid = Number(readFileSync(join(machine.path, 'pid'), 'utf8'))
    process.kill(pid, 'SIGTERM')
    await daemon.exited
  }
  await network?.[Symbol.asyncDispose]()
  machine[Symbol.dispose]()
}, 60_000)

const noRoot = whyNoRoot()
const isWithoutRoot = isSkipped || lacks(noRoot === null ? null : `the image on a bare root: ${noRoot}`)

test.skipIf(isWithoutRoot)(
  'a person with Docker and curl alone gets berth by the image, takes the tour, and removes all of it',
  async () => {
    if (network === null) throw new Error('There is no network.')
    await network.startFileServers(8080)
    // Whoever reaches the engine is in its group.
    chmodSync(socket, 0o666)
    const shared = { '/usr/bin/docker': '/usr/bin/docker', '/run/docker.sock': socket }
    const root = await BareRoot.make('root', {
      machine,
      network,
      packages: ['ca-certificates', 'curl'],
      shared,
    })
    const before = await root.list()
    await timed('docker', root.output(readmeCommands('docker')))
    await root.output(`docker run --rm ${image} run -- true`)
    const printed = await root.output(`
docker run --detach --name tour ${image} serve --allow-local-webhooks >container
docker exec tour berth wait --timeout 60s
${shellQuote(['docker', 'exec', 'tour', 'sh', '-euxc', TOUR])}
docker rm --force --volumes tour
docker image rm ${image}
rm container ${file.slice(release.length + 1)}
`)
    expect(missingIn(printed, 'berth')).toEqual([])
    expect(await root.output('docker ps -aq; docker images -q; docker volume ls -q')).toBe('')
    const left = differences(before, await root.list())
    expect(left.filter((path) => path !== '/home/person/.docker')).toEqual([])
    await dockerOutput('load', '--input', file)
  },
  600_000,
)

test.skipIf(isSkipped)(
  'the image runs as an ordinary user under Landlock, with a random key and a closed control API',
  async () => {
    const printed = await start('first', '--publish', '127.0.0.1:4747:4747', '--volume', 'first:/data')
    const [key = ''] = /sk_live_\w+/.exec(printed) ?? []
    expect(key.length).toBeGreaterThan(40)
    expect(printed).toContain('Isolation  landlock')
    const ask = (path: string, ...options: string[]) =>
      machine.output(
        [...(network?.within ?? []), 'curl', '-s', '-o', '/dev/null', '-w', '%{http_code}'].concat(
          ...options,
          `http://127.0.0.1:4747${path}`,
        ),
      )
    expect(await ask('/servers')).toBe('401')
    expect(await ask('/servers', '-H', `Authorization: Bearer ${key}`)).toBe('200')
    expect(await ask('/_berth/accounts')).toMatch(/^40[13]$/)
    const script = `id -u; S=$(berth servers create demo -q) && berth exec $S 'cat /data/master.key || echo hidden; git --version'`
    const inside = await dockerOutput('exec', 'first', 'sh', '-c', script)
    expect(inside).toMatch(/^1000\nhidden\ngit version /)
    await until(
      async () =>
        (await dockerOutput('inspect', 'first', '--format', '{{.State.Health.Status}}')) === 'healthy',
      'the health check',
      60_000,
    )
    // Docker gives ten seconds before it kills.
    await dockerOutput('stop', 'first')
    expect(await dockerOutput('inspect', 'first', '--format', '{{.State.ExitCode}}')).toBe('0')
    // The volume has the state, and another instance another key.
    await dockerOutput('start', 'first')
    await until(
      async () => (await docker('exec', 'first', 'berth', 'servers', 'list', '-q')).stdout.startsWith('srv_'),
      'the server of before',
      60_000,
    )
    const other = await start('other', '--volume', 'other:/data')
    expect(other).toContain('sk_live_')
    expect(other).not.toContain(key)
  },
  180_000,
)

test.skipIf(isSkipped)(
  'the image refuses to start where the isolation is missing, and has more where Docker permits it',
  async () => {
    const refused = await start('refused', '--env', 'BERTH_ISOLATION=bubblewrap')
    expect(refused).toMatch(/^berth: Isolation bubblewrap cannot be used here/)
    expect(await dockerOutput('wait', 'refused')).toBe('1')
    const open = ['--security-opt', 'seccomp=unconfined', '--security-opt', 'systempaths=unconfined']
    const printed = await start('open', ...open, '--env', 'BERTH_ISOLATION=bubblewrap')
    expect(printed).toContain('Isolation  bubblewrap')
  },
  120_000,
)
