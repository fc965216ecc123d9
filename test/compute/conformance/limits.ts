import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { Enforced } from '../../../src/compute/driver.ts'
import { LocalSandbox } from '../../../src/compute/local/sandbox.ts'
import { findDescendants } from '../../../src/compute/processes.ts'
import { ComputeError } from '../../../src/compute/sandbox.ts'
import type { Isolation } from '../../../src/config/config.ts'
import { Bench, isEngine, run, type Subject, TEST_PATH, until } from '../bench.ts'

const perl = Bun.which('perl', { PATH: TEST_PATH })
if (perl === null) console.error('SKIP: memory that no process has mapped, since perl is not installed')

/** memfd_create(2), by processor. */
const MEMFD_CREATE = process.arch === 'arm64' ? 279 : 319

/** Prints the bytes of the System V segments. */
const SEGMENT_BYTES = `perl -ne '@f = split; $n += $f[-2] if $. > 1; END { print $n + 0 }' /proc/sysvipc/shm`

/** Writes to 100 connections that nobody reads, 320 MB at most, and prints how many bytes they took. */
const UNREAD_CONNECTIONS = `
  use IO::Socket::INET;
  $all = IO::Socket::INET->new(Listen => 200, LocalAddr => "127.0.0.1:0") or die;
  for (1..100) {
    $one = IO::Socket::INET->new(PeerAddr => "127.0.0.1:" . $all->sockport) or die;
    $one->blocking(0); push @writers, $one; push @readers, $all->accept;
  }
  for (1..50) {
    for (@writers) { $bytes += syswrite($_, "x" x 65536) || 0 }
    select(undef, undef, undef, 0.02);
  }
  print $bytes;
`

/** What the tier says it enforces, it does. */
export function limitTests(name: Isolation, enforced: Enforced): void {
  describe(`limits (cpu ${enforced.cpu}, memory ${enforced.memory}, processes ${enforced.processes}, disk ${enforced.disk})`, () => {
    test.skipIf(enforced.memory === 'none')('a memory hog is ended, the server lives on', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 27 })
      const result = await run(sandbox, 'tail /dev/zero')
      expect(result.exitCode).toBe(137)
      expect((await run(sandbox, 'echo alive')).stdout).toBe('alive\n')
    })

    const hidesMemory = enforced.memory !== 'none' && perl !== null
    test.skipIf(!hidesMemory)(
      'memory that no process has mapped counts as a server’s: files in memory',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 27, storageBytes: 2 ** 30 })
        const makeFile = `$fd = syscall(${MEMFD_CREATE}, my $name = "x", 0); open($out, ">&=", $fd)`
        const hog = `perl -e '${makeFile}; $piece = "x" x 2**20; for (1..600) { syswrite($out, $piece); select(undef, undef, undef, 0.01) } sleep 20'`
        expect((await run(sandbox, hog)).exitCode).toBe(137)
        expect((await run(sandbox, 'echo alive')).stdout).toBe('alive\n')
      },
      120_000,
    )

    // Only there the segments are the server's own.
    test.skipIf(!hidesMemory || name !== 'bubblewrap')(
      'a file in memory and a shared segment that is not attached count together',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 27, storageBytes: 2 ** 30 })
        const file = `perl -e '$fd = syscall(${MEMFD_CREATE}, my $name = "x", 0); open($out, ">&=", $fd); syswrite($out, "x" x 2**20) for 1..90; sleep 10'`
        const segment = `perl -e '$id = shmget(0, 70 * 2**20, 01600); shmwrite($id, "x" x 2**20, $_ * 2**20, 2**20) for 0..69; sleep 2'`
        const codes = (await Promise.all([run(sandbox, file), run(sandbox, segment)])).map(
          ({ exitCode }) => exitCode,
        )
        expect(codes).toContain(137)
      },
      120_000,
    )

    // A cgroup's limit holds for them too, but there the kernel ends the server if it finds no command to end.
    test.skipIf(enforced.memory !== 'watchdog' || !hidesMemory || name !== 'bubblewrap')(
      'shared segments that commands leave behind are bounded by the limit',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 27, storageBytes: 2 ** 30 })
        const leave = `perl -e '$id = shmget(0, 48 * 2**20, 01600); shmwrite($id, "x" x 2**20, $_ * 2**20, 2**20) for 0..47'`
        for (let n = 0; n < 6; n++) await run(sandbox, leave)
        await until('the segments to be few', async () => {
          const { stdout } = await run(sandbox, SEGMENT_BYTES)
          return stdout !== '' && Number(stdout) <= 2 ** 27
        })
        expect((await run(sandbox, 'echo alive')).stdout).toBe('alive\n')
      },
      120_000,
    )

    test.skipIf(!hidesMemory || name !== 'bubblewrap')(
      'the file systems in memory count as memory',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 27, storageBytes: 2 ** 30 })
        const fill = 'for dir in /tmp /dev/shm; do head -c 500000000 /dev/zero > $dir/x; done 2>/dev/null'
        const { stdout } = await run(sandbox, `${fill}; cat /tmp/x /dev/shm/x | wc -c`)
        expect(Number(stdout)).toBeGreaterThan(2 ** 25)
        expect(Number(stdout)).toBeLessThanOrEqual(2 ** 26)
        const hog = `perl -e 'vec($x, 90 * 2**20, 8) = 1; sleep 15'`
        expect((await run(sandbox, hog)).exitCode).toBe(137)
        expect((await run(sandbox, `rm /tmp/x /dev/shm/x; ${hog.replace('15', '2')}`)).exitCode).toBe(0)
      },
      120_000,
    )

    test.skipIf(enforced.memory !== 'cgroup' || perl === null)(
      'data in connections that nobody reads is bounded by the limit',
      async () => {
        await using bench = new Bench(name)
        const memoryBytes = 2 ** 27
        const sandbox = await bench.start('srv_a', { memoryBytes })
        const { stdout } = await run(sandbox, `perl -e '${UNREAD_CONNECTIONS}'`)
        expect(Number(stdout)).toBeGreaterThan(2 ** 20)
        expect(Number(stdout)).toBeLessThan(memoryBytes)
        expect((await run(sandbox, 'echo alive')).stdout).toBe('alive\n')
      },
      120_000,
    )

    test.skipIf(enforced.processes === 'none')(
      'a fork bomb stays within the limit and ends with its command',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { processes: 60 })
        const bomb = run(sandbox, 'bomb() { bomb | bomb & }; bomb & exec sleep 300', { timeoutMs: 3000 })
        let most = 0
        const over = bomb.then(() => true)
        while (!(await Promise.race([over, Bun.sleep(20).then(() => false)]))) {
          most = Math.max(most, (await bench.commands()).length)
        }
        expect(most).toBeLessThan(enforced.processes === 'watchdog' ? 400 : 90)
        const { timedOut, exitCode } = await bomb
        // A watchdog may see the bomb before its time is up, and ends it then.
        if (enforced.processes === 'watchdog') expect(timedOut || exitCode === 137).toBe(true)
        else expect(timedOut).toBe(true)
        // What is killed is gone once the kernel comes to it, which a busy machine takes its time for.
        await until('the bomb to be gone', async () => (await bench.commands()).length === 0)
        // An ended process counts until its parent has taken note of it.
        const stdoutOf = (text: string) =>
          run(sandbox, text).then(
            ({ stdout }) => stdout,
            () => null,
          )
        await until('a command to start again', async () => (await stdoutOf('echo alive')) === 'alive\n')
      },
      120_000,
    )

    test('the agent starts no thread once it is ready: where none can be made it would abort', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start('srv_a', { processes: 1000 })
      if (!(sandbox instanceof LocalSandbox)) throw new Error('not a sandbox of this machine')
      const atFirst = agentThreads(sandbox)
      await Promise.all(Array.from({ length: 50 }, () => run(sandbox, 'seq 20000')))
      expect(agentThreads(sandbox)).toEqual(atFirst)
    })

    test.skipIf(!['cgroup', 'rlimit'].includes(enforced.processes))(
      'a command beyond the number of processes is refused with that reason',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { processes: 30 })
        await run(sandbox, 'for n in $(seq 100); do sleep 300 & done', { timeoutMs: 5000 })
        // The shell that filled it has left room for one: they must not come one after the other.
        const attempts = Array.from({ length: 3 }, () =>
          run(sandbox, 'exec sleep 1').catch((error: unknown) => error),
        )
        const refused = (await Promise.all(attempts)).filter((one) => one instanceof ComputeError)
        expect(refused.length).toBeGreaterThan(0)
        expect(refused[0]).toMatchObject({ message: expect.stringContaining('limit') })
      },
      120_000,
    )

    test.skipIf(enforced.cpu !== 'cgroup')(
      'processor time is dealt out',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { cpus: 0.2 })
        const command = 'timeout 2 sh -c "while :; do :; done"; cat /proc/$$/stat | cut -d" " -f16,17'
        const { stdout } = await run(sandbox, command)
        const [user = 0, system = 0] = stdout.trim().split(' ').map(Number)
        // Ticks of 10 ms: two seconds at a fifth are 40.
        expect(user + system).toBeGreaterThan(5)
        expect(user + system).toBeLessThan(100)
      },
      120_000,
    )

    test.skipIf(enforced.cpu !== 'cgroup' || availableParallelism() < 2)(
      'programs see the share of the processor: nproc, make, OpenMP and Go by the environment',
      async () => {
        await using bench = new Bench(name)
        const small = await bench.start('srv_a', { cpus: 0.5 })
        expect((await run(small, 'nproc; echo $GOMAXPROCS')).stdout).toBe('1\n1\n')
        const whole = await bench.start('srv_b', { cpus: availableParallelism() })
        expect((await run(whole, 'nproc; env')).stdout).not.toContain('GOMAXPROCS')
      },
    )

    test.skipIf(enforced.memory !== 'cgroup' || name !== 'bubblewrap')(
      'programs see the limits in their control group, read-only, and no other group',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 28 })
        const { stdout } = await run(
          sandbox,
          `cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes memory.max 2>/dev/null
           for file in $(find . -name cgroup.procs -o -name '*limit_in_bytes' -o -name memory.max); do echo 1 > $file; done 2>&1 | grep -v 'Read-only'
           find . -mindepth 2 -type d; find / -maxdepth 4 -name 'berth-*' -not -path '/proc/*' 2>/dev/null`,
        )
        expect(stdout).toBe(`${2 ** 28}\n`)
      },
    )

    test('an endless printer costs little once its output is dropped', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start()
      const running = run(sandbox, 'yes', { outputLimit: 1000, timeoutMs: 2000 })
      await until('it to run', async () => (await bench.commands()).length > 0)
      const result = await running
      expect(result).toMatchObject({ timedOut: true, truncated: true })
      expect(result.stdout.length).toBe(1000)
    })
  })
}

/** A server's files take no more than its storage. */
export function storageTests(name: Subject): void {
  describe('the storage', () => {
    test('a single file beyond the storage cannot be written', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start('srv_a', { storageBytes: 2 ** 22 })
      await run(sandbox, 'head -c 20000000 /dev/zero > big')
      const { stdout } = await run(sandbox, 'stat -c %s big')
      expect(Number(stdout)).toBe(2 ** 22)
    })

    test('commands that fill the storage are ended and told why', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start('srv_a', { storageBytes: 2 ** 22 })
      const command = 'n=0; while :; do n=$((n+1)); head -c 1000000 /dev/zero > file$n; sleep 0.2; done'
      const result = await run(sandbox, command)
      expect(result).toMatchObject({ exitCode: 137, timedOut: false })
      expect(result.stderr).toContain(`of ${2 ** 22} bytes`)
      expect((await run(sandbox, 'rm file*; echo fine')).stdout).toBe('fine\n')
    }, 120_000)

    test('caches that fill the storage are emptied, and what runs goes on', async () => {
      await using bench = new Bench(name)
      const handle = await bench.driver.create('srv_a')
      const sandbox = await bench.startAgain('srv_a', handle, { storageBytes: 2 ** 22 })
      const fill = `head -c 3000000 /dev/zero > ${sandbox.caches}/one; head -c 3000000 /dev/zero > ${sandbox.caches}/two`
      const command = `${fill}; while [ -e ${sandbox.caches}/one ]; do sleep 0.1; done; echo on > file; cat file`
      expect(await run(sandbox, command, { timeoutMs: 60_000 })).toMatchObject({
        exitCode: 0,
        stdout: 'on\n',
      })
    }, 120_000)

    // An engine has room for several of a server: those of a state that is restored, beside those in use.
    test.skipIf(!isEngine(name))(
      'files that are made for a server leave the one that runs alone',
      async () => {
        await using bench = new Bench(name)
        const { driver } = bench
        const sandbox = await bench.start('srv_a')
        await run(sandbox, 'echo present > file')
        const next = await driver.create('srv_a')
        await driver.workspace(next).write('file', Buffer.from('next'))
        expect(sandbox.ending).toBe(false)
        expect((await run(sandbox, 'cat file')).stdout).toBe('present\n')
        await driver.destroy(next)
      },
    )

    // Of a server that is reached by calls alone only the workspace is measured so.
    test.skipIf(name === 'piped')(
      'caches count as storage, are in no listing, and go with the server',
      async () => {
        await using bench = new Bench(name)
        const handle = await bench.driver.create('srv_a')
        const sandbox = await bench.startAgain('srv_a', handle)
        const workspace = bench.driver.workspace(handle)
        const before = await workspace.usage()
        await run(
          sandbox,
          `head -c 3000000 /dev/zero > ${sandbox.caches}/one; mkdir -p ${sandbox.caches}/a/b`,
        )
        expect(await workspace.usage()).toBeGreaterThan(before + 2_900_000)
        expect(await workspace.list({ all: true })).toEqual([])
        await bench.driver.emptyCaches(handle)
        expect(await workspace.usage()).toBe(before)
        expect(
          (await run(sandbox, `ls ${sandbox.caches}; echo again > ${sandbox.caches}/two`)).exitCode,
        ).toBe(0)
      },
    )

    test('what fills the storage in the background is ended too', async () => {
      await using bench = new Bench(name)
      const sandbox = await bench.start('srv_a', { storageBytes: 2 ** 22 })
      const loop = 'n=0; while :; do n=$((n+1)); head -c 1000000 /dev/zero > file$n; sleep 0.2; done'
      await run(sandbox, `(${loop}) >/dev/null 2>&1 &`)
      await until('it to run', async () => (await bench.commands()).length > 0)
      await until('it to be ended', async () => (await bench.commands()).length === 0, 15_000)
      expect((await run(sandbox, 'rm file*; echo fine')).stdout).toBe('fine\n')
    }, 120_000)
  })
}

/** The names of all threads, without their numbers: a new thread has the name of another until it has one of its own. */
function agentThreads({ pid }: LocalSandbox): string[] {
  const folders = [pid, ...findDescendants(pid)].map((one) => `/proc/${one}/task`)
  const threads = folders.flatMap((folder) => readdirSync(folder).map((thread) => `${folder}/${thread}/comm`))
  return threads.map((path) => readFileSync(path, 'utf8').replace(/[\d\s]+$/, '')).sort()
}
