import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/processes.ts'
import { lacks, Machine, owner, readmeCommands, release, version } from './support.ts'

const image = `${owner}/berth:${version}`
const file = join(release, `berth-${version}-image-linux-x64.tar.gz`)
const reason = !existsSync(file)
  ? 'the image for containers: it was not built, which takes root, apt-get and dockerd'
  : Bun.which('dockerd') === null
    ? 'the image for containers: there is no dockerd'
    : null
const isSkipped = lacks(reason)

const machine = new Machine()
/** A network namespace of this test, whose bridge and addresses are out of reach of others. */
const namespace = `berth-release-${process.pid}`
const socket = join(machine.path, 'docker.sock')
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
  await machine.output(['ip', 'netns', 'add', namespace])
  await machine.output(['ip', '-n', namespace, 'link', 'set', 'lo', 'up'])
  daemon = Bun.spawn(['ip', 'netns', 'exec', namespace, 'sh', '-c', START, machine.path], {
    env: machine.env,
    stdio: ['ignore', 'ignore', 'ignore'],
  })
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
    await machine.run(['ip', 'netns', 'delete', namespace])
  }
  machine[Symbol.dispose]()
}, 60_000)

test.skipIf(isSkipped)('the commands of the README load the image and run a first test', async () => {
  // Its place is a server only once it is published.
  const [, ...commands] = readmeCommands('docker').split('\n')
  const began = performance.now()
  const env = { DOCKER_HOST: `unix://${socket}` }
  const printed = await machine.output(['sh', '-ec', commands.join('\n')], { cwd: release, env })
  expect(printed).toEndWith('it works\n')
  console.log(
    `docker: from the image to a passed test in ${((performance.now() - began) / 1_000).toFixed(1)} s`,
  )
})

test.skipIf(isSkipped)(
  'the image runs as an ordinary user under Landlock, with a random key and a closed control API',
  async () => {
    const printed = await start('first', '--publish', '127.0.0.1:4747:4747', '--volume', 'first:/data')
    const [key = ''] = /sk_live_\w+/.exec(printed) ?? []
    expect(key.length).toBeGreaterThan(40)
    expect(printed).toContain('Isolation  landlock')
    const ask = (path: string, ...options: string[]) =>
      machine.output(
        ['ip', 'netns', 'exec', namespace, 'curl', '-s', '-o', '/dev/null', '-w', '%{http_code}'].concat(
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
