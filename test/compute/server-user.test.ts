import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ServerUsers } from '../../src/compute/bubblewrap/server-users.ts'
import { pathInFileSystem } from '../support/processes.ts'
import { Bench, driverOn, LIMITS, run, TEST_PATH, until } from './bench.ts'
import { networkIsPossible } from './network/network-bench.ts'
import { isolationOf, kernelUsers } from './server-user.ts'

const reason = await whyNot()
if (reason !== null) console.error(`SKIP the kernel's users of servers: ${reason}`)

describe.skipIf(reason !== null)('a server of a berth that runs as root', () => {
  test('has a user of the kernel’s own, who is not root, and no group', async () => {
    await using bench = new Bench('bubblewrap')
    const [one, two] = [await bench.start('srv_a'), await bench.start('srv_b')]
    const groups = 'sed -n "s/^Groups:[[:space:]]*//p" /proc/self/status'
    for (const sandbox of [one, two]) {
      expect((await run(sandbox, `sleep 300 & id -u; ${groups}`)).stdout.trim()).toBe('1000')
    }
    const users = [kernelUsers(one), kernelUsers(two)]
    expect(users.map(({ length }) => length)).toEqual([1, 1])
    const [[first = 0] = [], [second = 0] = []] = users
    expect(Math.min(first, second)).toBeGreaterThan(1000)
    expect(first).not.toBe(second)
  })

  test('reads nothing that only root may read, also where it is shown', async () => {
    await using bench = new Bench('bubblewrap')
    const home = join(bench.dataDir, 'tools')
    mkdirSync(join(home, 'bin'), { recursive: true })
    writeFileSync(join(home, 'bin/tool'), '#!/bin/sh\necho works\n', { mode: 0o755 })
    writeFileSync(join(home, 'bin/key'), 'secret\n', { mode: 0o600 })
    writeFileSync(join(home, 'bin/of-the-group'), 'secret\n', { mode: 0o640 })
    const driver = driverOn('bubblewrap', bench.dataDir, `${home}/bin:${TEST_PATH}`)
    const sandbox = await driver.start('srv_t', await driver.create('srv_t'), LIMITS)
    try {
      const { stdout, stderr } = await run(sandbox, `tool; cat ${home}/bin/key ${home}/bin/of-the-group`)
      expect(stdout).toBe('works\n')
      expect(stderr.match(/Permission denied/g)?.length).toBe(2)
    } finally {
      await sandbox.stop()
    }
  })

  test('has its own share of what the kernel counts for each user, whatever others take', async () => {
    await using bench = new Bench('bubblewrap')
    const take = `bun -e '
      import { dlopen } from "bun:ffi"
      const { inotify_init } = dlopen("libc.so.6", { inotify_init: { args: [], returns: "int" } }).symbols
      let open = 0
      while (open < 200 && inotify_init() >= 0) open++
      console.log(open)
      await Bun.sleep(300_000)' > taken &`
    const all = 'until [ -s taken ]; do sleep 0.02; done; cat taken'
    // Together more than the 128 that a user of this machine may have.
    for (const id of ['srv_a', 'srv_b', 'srv_c']) {
      const sandbox = await bench.start(id)
      expect((await run(sandbox, `${take} ${all}`)).stdout).toBe('64\n')
    }
  })

  test('is held to its number of processes by the kernel where no control group can', async () => {
    await using bench = new Bench('bubblewrap')
    const script = `
      import { processLimitOf } from ${JSON.stringify(join(import.meta.dir, 'server-user.ts'))}
      console.log(JSON.stringify(await processLimitOf(${JSON.stringify(bench.dataDir)})))`
    const hidden = 'umount -R -l /sys/fs/cgroup; exec "$@"'
    const argv = ['unshare', '--mount', 'sh', '-c', hidden, 'sh', process.execPath, '-e', script]
    const child = Bun.spawn(argv, { stdio: ['ignore', 'pipe', 'inherit'] })
    const { enforced, limit, started } = JSON.parse(await child.stdout.text())
    expect({ enforced, limit }).toEqual({ enforced: 'rlimit', limit: 60 })
    expect(started).toBeGreaterThan(20)
    expect(started).toBeLessThanOrEqual(60)
  })

  test('has a workspace whose files are root’s on the disk, and its user’s inside, whichever user that is', async () => {
    await using bench = new Bench('bubblewrap')
    const handle = await bench.driver.create('srv_a')
    const disk = join(bench.dataDir, 'servers/srv_a/workspace')
    const files = bench.driver.workspace(handle)
    await files.write('placed', new Blob(['placed\n']).stream())
    chmodSync(join(disk, 'placed'), 0o600)
    const sandbox = await bench.startAgain('srv_a', handle)
    const [before] = kernelUsers(sandbox)
    const make = `set -e; umask 077; cat placed; echo more >> placed
      mkdir -p a/b; echo text > a/b/file; ln a/b/file hard; ln -s hard soft; mkfifo fifo; mv a/b/file a/moved
      cp /bin/true set-user-id; chmod 6755 set-user-id
      perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "socket", Listen => 1) or die'
      git init -q . && git add a && git -c user.name=a -c user.email=a@b commit -qm one && git status --short | wc -l
      find . ! -user 1000 -o ! -group 1000`
    const { stdout, stderr } = await run(sandbox, make)
    expect({ stdout, stderr }).toEqual({ stdout: 'placed\n4\n', stderr: '' })
    const owners = readdirSync(disk, { recursive: true, encoding: 'utf8' }).map((name) => {
      const { uid, gid } = lstatSync(join(disk, name))
      return `${uid}:${gid}`
    })
    expect(owners.length).toBeGreaterThan(30)
    expect([...new Set(owners)]).toEqual(['0:0'])
    await sandbox.stop()
    const again = await bench.startAgain('srv_a', handle)
    expect(kernelUsers(again)).not.toEqual([before ?? 0])
    expect((await run(again, 'echo on >> hard; cat placed soft; rm -r a .git; ls')).stdout).toBe(
      'placed\nmore\ntext\non\nfifo\nhard\nplaced\nset-user-id\nsocket\nsoft\n',
    )
    expect(readFileSync(join(disk, 'hard'), 'utf8')).toBe('text\non\n')
    await files.remove('placed')
    expect(readdirSync(disk)).not.toContain('placed')
  })

  test('leaves no mount: not on this machine while it runs, and nowhere afterwards', async () => {
    await using bench = new Bench('bubblewrap')
    const before = readFileSync('/proc/self/mountinfo', 'utf8')
    const [directory, root] = [process.cwd(), readdirSync('/')]
    const sandbox = await bench.start()
    expect((await run(sandbox, 'echo x > file; grep -c " /workspace " /proc/self/mountinfo')).stdout).toBe(
      '1\n',
    )
    expect(tablesWith(bench.dataDir)).not.toEqual([])
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).toBe(before)
    expect([process.cwd(), readdirSync('/')]).toEqual([directory, root])
    expect(readdirSync('.')).toEqual(readdirSync(directory))
    await sandbox.stop()
    await until('no process to have it mounted', () => tablesWith(bench.dataDir).length === 0)
  })

  test('keeps the user of berth, and that is said, where the file system does not map owners', async () => {
    using folder = new Folder()
    const script = `mount -t ramfs none "$1" && exec "$2" "$3" "$1" "$4"`
    const { stdout, stderr } = Bun.spawnSync([
      ...['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', folder.path],
      ...[process.execPath, join(import.meta.dir, 'server-user-report.ts'), TEST_PATH],
    ])
    expect(JSON.parse(stdout.toString())).toEqual({
      said: 'shared with root',
      users: [0],
      wrote: 'written\nberth\n',
    })
    expect(stderr.toString()).toContain('mount_setattr failed with error 22')
  })

  test.each(['echo "unshare: not here" >&2', ':'])(
    'keeps the user of berth where it does not start with another: %s',
    async (says) => {
      using folder = new Folder()
      const programs = join(folder.path, 'programs')
      mkdirSync(programs)
      writeFileSync(join(programs, 'unshare'), `#!/bin/sh\n${says}; exit 1\n`, {
        mode: 0o755,
      })
      expect(await isolationOf(folder.path, `${programs}:${TEST_PATH}`)).toEqual({
        said: 'shared with root',
        users: [0],
        wrote: 'written\nberth\n',
      })
    },
  )
})

/** Pids of the processes that have a mount of a data folder's servers. */
function tablesWith(dataDir: string): string[] {
  const servers = `${pathInFileSystem(dataDir)}/servers/`
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(servers)
    } catch {
      return false
    }
  })
}

class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'berth-user-'));

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

async function whyNot(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'berth runs as an ordinary user here'
  if (!(await networkIsPossible())) return 'they have no network of their own'
  if (Bun.which('unshare', { PATH: TEST_PATH }) === null) return 'unshare is not installed'
  try {
    new ServerUsers().take({ '/mnt': tmpdir() }).release()
    return null
  } catch (error) {
    return String(error)
  }
}
