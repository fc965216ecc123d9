import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { systemCallFilter } from '../../src/system/linux/seccomp-filter.ts'
import { runFilter, type SystemCall } from './bpf.ts'
import { SYSTEM_CALLS } from './system-call-numbers.ts'

/** Architectures in audit(7), of linux/audit.h. */
const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7, i386: 0x40000003, arm: 0x40000028, riscv64: 0xc00000f3 }
const ARCHITECTURES = ['x64', 'arm64'] as const

/** Results of a filter, of linux/seccomp.h. */
const ALLOW = 0x7fff0000
const KILL_PROCESS = 0x80000000
const errno = (number: number): number => 0x00050000 + number
const EPERM = errno(1)
const ENOSYS = errno(38)
const EAFNOSUPPORT = errno(97)

const AF_VSOCK = 40n
const PR_SET_DUMPABLE = 4n
const X32 = 0x4000_0000
/** A thread of sandboxd's, and one of another process. */
const [OWN, OTHER] = [4711n, 4712n]

const ABSENT = [
  ...['add_key', 'request_key', 'keyctl'],
  ...['io_setup', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'],
]

/** The Linux headers of this machine, by the architecture whose numbers they have. */
const HEADERS = {
  x64: '/usr/include/x86_64-linux-gnu/asm/unistd_64.h',
  arm64: '/usr/include/asm-generic/unistd.h',
}

describe.each([...ARCHITECTURES])('the filter of system calls for %s', (arch) => {
  const numbers = SYSTEM_CALLS[arch]
  const numberOf = (name: string): number => {
    const number = numbers.get(name)
    if (number === undefined) throw new Error(`no system call ${name}`)
    return number
  }
  const filterOf = (descriptorsShown: boolean, unixSockets = false, setIdBits = false): Uint8Array => {
    const filter = systemCallFilter(arch, [Number(OWN), 9000], { descriptorsShown, unixSockets, setIdBits })
    if (filter === null) throw new Error('no filter')
    return filter
  }
  const filter = filterOf(true)
  const answer = (name: string, ...args: bigint[]): number =>
    runFilter(filter, { number: numberOf(name), arch: AUDIT[arch], args })
  const run = (call: Partial<SystemCall>): number =>
    runFilter(filter, { number: 0, arch: AUDIT[arch], ...call })

  test('refuses set-user-id and set-group-id bits where it is asked to, and no other mode', () => {
    const refusing = filterOf(true, false, true)
    const calls = [...numbers.keys()].filter((name) => ['chmod', 'fchmod', 'fchmodat'].includes(name))
    expect(calls.length).toBe(arch === 'x64' ? 3 : 2)
    for (const name of calls) {
      for (const mode of [0o4755n, 0o2755n, 0o6000n, 0o1777n, 0o755n, 0n]) {
        const args = name === 'fchmodat' ? [0n, 0n, mode] : [0n, mode]
        const call = { number: numberOf(name), arch: AUDIT[arch], args }
        expect([name, mode, runFilter(refusing, call)]).toEqual([name, mode, mode & 0o6000n ? EPERM : ALLOW])
        expect(runFilter(filter, call)).toBe(ALLOW)
      }
    }
    // fchmodat2, of Linux 6.6; the same on all.
    const call = { number: 452, arch: AUDIT[arch], args: [0n, 0n, 0o4755n] }
    expect(runFilter(refusing, call)).toBe(EPERM)
  })

  test('refuses the kernel’s keyrings and io_uring, and no other call by its number alone', () => {
    const refused = [...numbers].filter(([name]) => answer(name) !== ALLOW)
    expect(refused.map(([name]) => name).sort()).toEqual([...ABSENT].sort())
    for (const name of ABSENT) expect(answer(name)).toBe(ENOSYS)
    const known = new Set(numbers.values())
    const others = Array.from({ length: 1024 }, (_, number) => number).filter((number) => !known.has(number))
    expect(others.filter((number) => run({ number }) !== ALLOW)).toEqual([])
  })

  test('refuses sockets of virtual machines, whatever the upper half of the argument is', () => {
    expect([1n, 2n, 10n, 16n].map((family) => answer('socket', family, 1n))).toEqual(Array(4).fill(ALLOW))
    for (const family of [AF_VSOCK, AF_VSOCK + 2n ** 32n, AF_VSOCK - 2n ** 32n]) {
      expect(answer('socket', family, 1n)).toBe(EAFNOSUPPORT)
    }
    expect(answer('socketpair', AF_VSOCK)).toBe(ALLOW)
  })

  test('refuses Unix sockets and pairs of datagrams if it is to, and leaves pairs of streams', () => {
    const strict = filterOf(true, true)
    const call = (name: string, ...args: bigint[]): number =>
      runFilter(strict, { number: numberOf(name), arch: AUDIT[arch], args })
    const [stream, datagram, raw, seqpacket] = [1n, 2n, 3n, 5n]
    const flags = 0o2004000n
    expect(answer('socket', 1n, stream)).toBe(ALLOW)
    expect(answer('socketpair', 1n, datagram)).toBe(ALLOW)
    for (const kind of [stream, datagram, seqpacket]) {
      expect([call('socket', 1n, kind), call('socket', 1n + 2n ** 32n, kind)]).toEqual(
        Array(2).fill(EAFNOSUPPORT),
      )
      expect([2n, 10n, 16n].map((family) => call('socket', family, kind))).toEqual(Array(3).fill(ALLOW))
    }
    for (const kind of [stream, seqpacket, stream | flags, seqpacket | flags]) {
      expect(call('socketpair', 1n, kind)).toBe(ALLOW)
    }
    // The kernel makes a datagram socket of a raw one.
    for (const kind of [datagram, raw, datagram | flags, raw | flags, datagram + 2n ** 32n]) {
      expect(call('socketpair', 1n, kind)).toBe(EAFNOSUPPORT)
    }
  })

  test('refuses to reserve a file, whichever process would wait for it, and lets every other operation on a descriptor', () => {
    const [setLease, setDelegation] = [1024n, 1040n]
    for (const command of [setLease, setDelegation, setLease + 2n ** 32n])
      expect(answer('fcntl', 3n, command, 1n)).toBe(EPERM)
    const others = Array.from({ length: 2048 }, (_, command) => BigInt(command))
    expect(others.filter((command) => answer('fcntl', 3n, command) !== ALLOW)).toEqual([
      setLease,
      setDelegation,
    ])
  })

  test('lets limits of sandboxd be read, not be set', () => {
    expect(answer('prlimit64', OWN, 7n, 0n, 1n)).toBe(ALLOW)
    for (const limits of [1n, 2n ** 32n, 2n ** 63n]) {
      expect(answer('prlimit64', OWN, 7n, limits)).toBe(EPERM)
      expect(answer('prlimit64', 9000n, 7n, limits)).toBe(EPERM)
      expect(answer('prlimit64', OTHER, 7n, limits)).toBe(ALLOW)
      expect(answer('prlimit64', 0n, 7n, limits)).toBe(ALLOW)
    }
    expect(answer('setrlimit', OWN, 1n)).toBe(ALLOW)
  })

  test('lets no priority be set of sandboxd, nor of a whole user', () => {
    for (const [name, process, group, user] of [
      ['setpriority', 0n, 1n, 2n],
      ['ioprio_set', 1n, 2n, 3n],
    ] as const) {
      expect([process, group].map((kind) => answer(name, kind, OWN))).toEqual([EPERM, EPERM])
      expect([process, group].map((kind) => answer(name, kind, OTHER))).toEqual([ALLOW, ALLOW])
      expect([OWN, OTHER, 0n].map((who) => answer(name, user, who))).toEqual([EPERM, EPERM, EPERM])
    }
    for (const name of ['sched_setparam', 'sched_setscheduler', 'sched_setaffinity', 'sched_setattr']) {
      expect([OWN, OTHER, 0n].map((thread) => answer(name, thread, 8n, 1n))).toEqual([EPERM, ALLOW, ALLOW])
    }
    for (const name of ['sched_getparam', 'sched_getscheduler', 'sched_getaffinity', 'getpriority']) {
      expect(answer(name, OWN, OWN)).toBe(ALLOW)
    }
  })

  test('lets no process hide its descriptors from the watchdog, and pretends that it can', () => {
    expect(answer('prctl', PR_SET_DUMPABLE, 0n)).toBe(errno(0))
    expect(answer('prctl', 3n)).toBe(ALLOW)
    const call = { number: numberOf('prctl'), arch: AUDIT[arch], args: [PR_SET_DUMPABLE, 0n] }
    expect(runFilter(filterOf(false), call)).toBe(ALLOW)
  })

  test('kills a program of another architecture, whatever it calls', () => {
    for (const [name, foreign] of Object.entries(AUDIT)) {
      if (name === arch) continue
      for (let number = 0; number < 512; number += 1)
        expect(run({ number, arch: foreign })).toBe(KILL_PROCESS)
    }
  })

  test('takes part in no other interface of the architecture', () => {
    const results = new Set([...numbers.values()].map((number) => run({ number: number + X32 })))
    expect([...results]).toEqual([arch === 'x64' ? ENOSYS : ALLOW])
    expect(run({ number: 2 ** 32 - 1 })).toBe(arch === 'x64' ? ENOSYS : ALLOW)
  })

  test.skipIf(!existsSync(HEADERS[arch]))('has the numbers of the kernel’s headers', () => {
    const found = new Map<string, number>()
    for (const [, name = '', number] of readFileSync(HEADERS[arch], 'utf8').matchAll(
      /^#define __NR(?:3264)?_(\w+)\s+(\d+)$/gm,
    )) {
      found.set(name, Number(number))
    }
    const named = [
      ...ABSENT,
      'socket',
      'socketpair',
      'prlimit64',
      'prctl',
      'setpriority',
      'ioprio_set',
      'sched_setattr',
    ]
    for (const name of [...named, 'sched_setparam', 'sched_setscheduler', 'sched_setaffinity']) {
      expect([name, found.get(name)]).toEqual([name, numberOf(name)])
    }
  })
})

test('there is no filter for an architecture whose numbers are not known', () => {
  expect(
    systemCallFilter('s390x', [], { descriptorsShown: true, unixSockets: true, setIdBits: true }),
  ).toBeNull()
})
