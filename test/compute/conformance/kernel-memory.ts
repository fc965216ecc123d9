import { describe, expect, test } from 'bun:test'
import type { Enforced } from '../../../src/compute/driver.ts'
import type { Isolation } from '../../../src/config/config.ts'
import { Bench, run, TEST_PATH } from '../bench.ts'
import { inScript } from '../confinement.ts'

const hasPerl = Bun.which('perl', { PATH: TEST_PATH }) !== null

/** memfd_create(2), prctl(2) and the exit(2) of one thread, by processor. */
const [MEMFD_CREATE, PRCTL, EXIT_THREAD] = process.arch === 'arm64' ? [279, 167, 93] : [319, 157, 60]

/** Reads one byte of every 2 MiB of 256 GiB: no page of it is the process's own, but 512 MiB of page tables are. */
const PAGE_TABLES = `
  const { symbols } = dlopen('libc.so.6', {
    mmap: { args: ['u64', 'u64', 'int', 'int', 'int', 'i64'], returns: 'u64' },
    madvise: { args: ['u64', 'u64', 'int'], returns: 'int' },
  })
  const size = 2 ** 38
  // Private, anonymous and without reserve; and without huge pages.
  const start = symbols.mmap(0, size, 1, 0x4022, -1, 0)
  symbols.madvise(start, size, 15)
  for (let at = 0; at < size; at += 2 ** 21) {
    read.u8(Number(start) + at)
    if (at % 2 ** 32 === 0) await Bun.sleep(20)
  }
  await Bun.sleep(20_000)
`

/** Fills 3,000 pairs of sockets, 200 KB each, and closes every second sender. */
const SOCKETS = `
  use Socket; use Fcntl;
  for $n (1..3000) {
    socketpair(my $from, my $to, AF_UNIX, SOCK_STREAM, 0) or last;
    fcntl($from, F_SETFL, O_NONBLOCK);
    1 while syswrite($from, "x" x 65536);
    push @kept, $n % 2 ? ($from, $to) : $to;
    select(undef, undef, undef, 0.01) if $n % 10 == 0;
  }
  sleep 20;
`

/** Asks the kernel for the loopback interface (RTM_GETLINK), and does not read what 4,000 sockets get as answers. */
const NETLINK = `
  use Socket;
  my $asked = pack("LSSLL CCSlLL", 32, 18, 1, 1, 0, 0, 0, 0, 1, 0, 0) x 100;
  for $n (1..4000) {
    socket(my $socket, 16, 3, 0) or last;
    setsockopt($socket, SOL_SOCKET, SO_RCVBUF, 2**22);
    send($socket, $asked, 0x40, pack("SSLL", 16, 0, 0, 0)) for 1..10;
    push @kept, $socket;
    select(undef, undef, undef, 0.02);
  }
  sleep 20;
`

/** Sends 20 datagrams of 50,000 bytes to each of 2,000 sockets, which does not read them. */
const UDP = `
  use Socket;
  socket(my $from, AF_INET, SOCK_DGRAM, 0);
  for $n (1..2000) {
    socket(my $to, AF_INET, SOCK_DGRAM, 0) or last;
    setsockopt($to, SOL_SOCKET, SO_RCVBUF, 2**22);
    bind($to, pack_sockaddr_in(0, inet_aton("127.0.0.1")));
    send($from, "x" x 50000, 0x40, getsockname($to)) for 1..20;
    push @kept, $to;
    select(undef, undef, undef, 0.01);
  }
  sleep 20;
`

/** Has the kernel report when it has sent what a socket sends, with a copy: SO_TIMESTAMPING of socket(7). */
const REPORTED = 'setsockopt($from, SOL_SOCKET, SO_RCVBUF, 2**22); setsockopt($from, SOL_SOCKET, 37, 18)'

/** Sends 20 datagrams of 50,000 bytes from each of 2,000 sockets, and does not read the reports. */
const UDP_REPORTS = `
  use Socket;
  socket(my $to, AF_INET, SOCK_DGRAM, 0); bind($to, pack_sockaddr_in(0, inet_aton("127.0.0.1")));
  setsockopt($to, SOL_SOCKET, SO_RCVBUF, 1);
  for $n (1..2000) {
    socket(my $from, AF_INET, SOCK_DGRAM, 0) or last; ${REPORTED};
    send($from, "x" x 50000, 0x40, getsockname($to)) for 1..20;
    push @kept, $from;
    select(undef, undef, undef, 0.01);
  }
  sleep 20;
`

/** Sends 50,000 bytes 20 times over each of 2,000 connections, reads them, and does not read the reports. */
const TCP_REPORTS = `
  use Socket;
  socket(my $all, AF_INET, SOCK_STREAM, 0); bind($all, pack_sockaddr_in(0, inet_aton("127.0.0.1"))); listen($all, 9);
  for $n (1..2000) {
    socket(my $from, AF_INET, SOCK_STREAM, 0) or last; connect($from, getsockname($all)); accept(my $to, $all) or last;
    ${REPORTED};
    for (1..20) { send($from, "x" x 50000, 0x40); sysread($to, my $read, 100000) }
    push @kept, $from, $to;
    select(undef, undef, undef, 0.01);
  }
  sleep 20;
`

/** Writes 600 MiB into a file in memory. */
const FILE = `$fd = syscall(${MEMFD_CREATE}, my $name = "x", 0); open($out, ">&=", $fd); $piece = "x" x 2**20; for (1..600) { syswrite($out, $piece); select(undef, undef, undef, 0.01) } sleep 20`

/** Fills 600 MiB in a second thread, after the first one has ended: /proc shows such a process as one that is over. */
const SECOND_THREAD = `
  use threads;
  threads->create(sub { for (1..600) { push @kept, "x" x 2**20; select(undef, undef, undef, 0.01) } sleep 20 });
  syscall(${EXIT_THREAD}, 0);
`

/** Makes 200,000 empty files in memory. */
const NAMES = `
  mkdir "/tmp/names"; for $n (1..200000) { open(my $file, ">", "/tmp/names/$n") or last; close($file) } sleep 20;
`

/** Makes 256 MB of System V semaphores and 64 MB of messages, and leaves them behind. Prints how many sets and queues. */
const OBJECTS = `
  for (1..400) { defined semget(0, 10000, 0600) or last; $sets += 1 }
  for (1..4000) { defined(my $queue = msgget(0, 0600)) or last; $queues += 1; msgsnd($queue, pack("l! a*", 1, "x" x 8000), 2048) for 1..2 }
  print "$sets sets, $queues queues\\n";
`

/** Memory that a program has without its being mapped, or visible to programs of the same user. */
export function kernelMemoryTests(name: Isolation, { memory }: Enforced): void {
  const limited = memory !== 'none' && hasPerl
  const ways: Array<[what: string, holds: boolean, command: (home: string) => string]> = [
    ['page tables', limited, (home) => inScript(home, PAGE_TABLES)],
    // Without a cgroup, the sockets of a network that servers share are not told apart.
    [
      'data in Unix sockets that nobody reads',
      limited && (memory === 'cgroup' || name === 'bubblewrap'),
      () => `ulimit -n $(ulimit -Hn); exec perl -e '${SOCKETS}'`,
    ],
    // No cgroup counts it.
    [
      'messages in netlink sockets that nobody reads',
      limited && name === 'bubblewrap',
      () => `ulimit -n $(ulimit -Hn); exec perl -e '${NETLINK}'`,
    ],
    ...[
      ['reports of sent datagrams that nobody reads', UDP_REPORTS] as const,
      ['reports of sent data of connections that nobody reads', TCP_REPORTS] as const,
    ].map(([what, script]): (typeof ways)[number] => [
      what,
      limited && name === 'bubblewrap',
      () => `ulimit -n $(ulimit -Hn); exec perl -e '${script}'`,
    ]),
    // A cgroup gives data in connections a limit of its own.
    [
      'data in UDP sockets that nobody reads',
      limited && name === 'bubblewrap' && memory === 'watchdog',
      () => `ulimit -n $(ulimit -Hn); exec perl -e '${UDP}'`,
    ],
    [
      'a file in memory of a process that hides its descriptors',
      limited && name !== 'none',
      () => `exec perl -e 'syscall(${PRCTL}, 4, 0, 0, 0, 0); ${FILE}'`,
    ],
    ['a thread that has outlived the first one', limited, () => `exec perl -e '${SECOND_THREAD}'`],
    [
      'a file in memory of an unreadable program, whose descriptors are hidden',
      limited && name !== 'none',
      () => `cp "$(command -v perl)" hidden && chmod 0111 hidden && exec ./hidden -e '${FILE}'`,
    ],
  ]
  describe('memory of the kernel', () => {
    test.skipIf(memory !== 'watchdog' || !limited || name !== 'bubblewrap')(
      'counts as the server’s: names in file systems in memory',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 27, storageBytes: 2 ** 30 })
        const ended = await run(sandbox, `exec perl -e '${NAMES}'`, { timeoutMs: 15_000 })
        expect(ended).toMatchObject({ exitCode: 137, timedOut: false })
      },
      60_000,
    )

    test.skipIf(memory !== 'watchdog' || !limited || name !== 'bubblewrap')(
      'counts as the server’s: semaphores and messages that commands leave behind, which are removed',
      async () => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 27, storageBytes: 2 ** 30 })
        const made = await run(sandbox, `perl -e '${OBJECTS}'`)
        expect(made.stdout).toBe('400 sets, 4000 queues\n')
        // The watchdog looks while a command runs, and removes the largest.
        const left = 'cat /proc/sysvipc/sem | wc -l'
        const until = `for n in $(seq 100); do [ $(${left}) -lt 250 ] && break; sleep 0.1; done; ${left}`
        const { stdout } = await run(sandbox, until, { timeoutMs: 15_000 })
        expect(Number(stdout)).toBeLessThan(250)
      },
      60_000,
    )

    test.each(ways.filter(([, holds]) => holds))(
      'counts as the server’s: %s',
      async (what, _, command) => {
        await using bench = new Bench(name)
        const sandbox = await bench.start('srv_a', { memoryBytes: 2 ** 27, storageBytes: 2 ** 30 })
        const ended = await run(sandbox, command(sandbox.home), { timeoutMs: 15_000 })
        expect(ended).toMatchObject({ exitCode: 137, timedOut: false })
        // The kernel takes page tables back late: if sandboxd wants memory before, it ends sandboxd too.
        if (what === 'page tables' && memory === 'cgroup') return
        expect((await run(sandbox, 'echo alive')).stdout).toBe('alive\n')
      },
      120_000,
    )
  })
}
