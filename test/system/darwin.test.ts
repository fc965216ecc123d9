import { describe, expect, test } from 'bun:test'
import { closeSync, readSync } from 'node:fs'
import { controlOf } from '../../src/system/darwin/calls.ts'
import {
  argumentsIn,
  descriptorsIn,
  fileIn,
  handleIn,
  identityIn,
  processIn,
  taskIn,
  tcpSocketIn,
} from '../../src/system/darwin/libproc.ts'
import { Lineage } from '../../src/system/darwin/lineage.ts'
import { footprintIn } from '../../src/system/darwin/memory.ts'
import { linuxProcesses } from '../../src/system/linux/processes.ts'
import { processes } from '../../src/system/processes.ts'

/**
 * Lays out a structure as a C compiler does on 64-bit systems, field by field: each at a multiple of its own size, the whole
 * a multiple of 8. So the offsets of src/system/darwin/ are checked against the order of fields in Apple's headers
 * (xnu, bsd/sys/proc_info.h and bsd/sys/resource.h) and not against themselves.
 */
class Structure {
  readonly #bytes: number[] = []

  u8 = (...values: number[]) => this.#put(1, values)
  u16 = (...values: number[]) => this.#put(2, values)
  u32 = (...values: number[]) => this.#put(4, values)
  u64 = (...values: (number | bigint)[]) => this.#put(8, values)

  /** A field of characters, filled with zeros. */
  text(text: string, length: number): this {
    return this.u8(...Buffer.from(text), ...new Array(length - Buffer.byteLength(text)).fill(0))
  }

  /** A structure within it. */
  put(other: Structure): this {
    while (this.#bytes.length % 8 !== 0) this.#bytes.push(0)
    this.#bytes.push(...other.#bytes)
    return this
  }

  /** @param length the length that the headers state, or that is known of the structure */
  end(length: number): Uint8Array {
    while (this.#bytes.length % 8 !== 0) this.#bytes.push(0)
    expect(this.#bytes).toHaveLength(length)
    return Uint8Array.from(this.#bytes)
  }

  #put(size: number, values: readonly (number | bigint)[]): this {
    for (const value of values) {
      while (this.#bytes.length % size !== 0) this.#bytes.push(0)
      for (let byte = 0; byte < size; byte += 1)
        this.#bytes.push(Number((BigInt(value) >> BigInt(8 * byte)) & 255n))
    }
    return this
  }
}

/** `struct proc_fileinfo`: open flags, status, offset, type, guard flags. */
const fileInfo = () => new Structure().u32(1, 0).u64(0).u32(1, 0)

/** `struct vinfo_stat`, of a file's device and inode. */
const stat = (dev: number, ino: number) =>
  new Structure()
    .u32(dev)
    .u16(0o100644, 1)
    .u64(ino)
    .u32(501, 20)
    .u64(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    .u32(4_096, 0, 0, 0)
    .u64(0, 0)

/** A port in network byte order, in an int. */
const port = (number: number) => ((number & 255) << 8) | (number >> 8)

/** `struct socket_fdinfo` of a TCP socket; `addr` is the field `insi_laddr`. */
function tcpSocket(kind: number, vflag: number, addr: readonly number[], state: number): Uint8Array {
  const ofInternet = new Structure()
    .u32(port(443), port(8_080))
    .u64(77)
    .u32(0, 0)
    .u8(vflag, 64)
    .u32(0)
    // insi_faddr and insi_laddr are unions of structures with words of 4 bytes.
    .u8(...new Array(16).fill(9), ...addr)
    // insi_v4, and insi_v6, which begins with a byte before an int.
    .u8(0)
    .u32(0, 0)
    .u16(0, 0)
  const info = new Structure()
    .put(stat(0, 0))
    .u64(0xffff_fe00_1234_5678n, 2)
    .u32(1, 6, 2)
    .u16(0, 0, 2, 0, 0, 0, 0, 0)
    .u32(0)
    // Two `struct sockbuf_info`.
    .u32(1, 2, 3, 4, 5)
    .u16(6, 7)
    .u32(1, 2, 3, 4, 5)
    .u16(6, 7)
    .u32(kind, 0)
  // The longest of the union, `struct un_sockinfo`, has two handles and two addresses of 255 bytes.
  const proto = new Structure()
    .put(ofInternet)
    .u32(state)
    .u8(...new Array(528 - 84).fill(0))
  return new Structure().put(fileInfo()).put(info).put(proto).end(792)
}

describe('the structures of Darwin', () => {
  test('a process: its parent, user, name, groups and start', () => {
    const report = new Structure()
      .u32(0x10, 2, 0, 4_321, 77, 501, 20, 501, 20, 501, 20, 0)
      .text('berth', 16)
      .text('berth-long-name', 32)
      .u32(10, 4_300, 1, 0x1000_0003, 4_299)
      .u32(0)
      .u64(1_700_000_000, 123_456)
      .end(136)
    expect(processIn(report)).toEqual({
      status: 2,
      parent: 77,
      uid: 501,
      name: 'berth',
      group: 4_300,
      foregroundGroup: 4_299,
      startedUs: 1_700_000_000_123_456n,
    })
  })

  test('a task: its memory, time and threads', () => {
    const report = new Structure()
      .u64(400_000_000_000, 12_345_678, 1_000, 500, 7, 8)
      .u32(1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 2, 31)
      .end(96)
    expect(taskIn(report)).toEqual({
      residentBytes: 12_345_678,
      ticks: 1_500,
      threads: 11,
      runningThreads: 2,
    })
  })

  test('a descent by numbers that are given once', () => {
    const report = new Structure()
      .u8(...new Array(16).fill(7))
      .u64(991, 990)
      .u32(1, 2)
      .u64(0, 0)
      .end(56)
    expect(identityIn(report)).toEqual({ own: 991n, parent: 990n })
  })

  test('the footprint of a process', () => {
    const usage = new Structure()
      .u8(...new Array(16).fill(7))
      .u64(1, 2, 3, 4, 5, 6, 7, 8_000_000, 9, 10)
      .end(96)
    expect(footprintIn(usage)).toBe(8_000_000)
  })

  test('descriptors, and the file, socket or pipe behind them', () => {
    const list = new Structure().u32(0, 1, 5, 2, 6, 6).end(24)
    expect(descriptorsIn(list)).toEqual([
      { fd: 0, type: 1 },
      { fd: 5, type: 2 },
      { fd: 6, type: 6 },
    ])
    const vnode = new Structure().put(stat(0x0100_0004, 12_345)).u32(1, 0, 0x0100_0004, 26)
    const file = new Structure().put(fileInfo()).put(vnode).text('/Users/a/lock', 1_024).end(1_200)
    expect(fileIn(file)).toEqual({ path: '/Users/a/lock', dev: 0x0100_0004n, ino: 12_345n })
    const pipe = new Structure().put(fileInfo()).put(stat(0, 0)).u64(0xabc, 0xdef).u32(0, 0).end(184)
    expect(handleIn(pipe)).toBe(0xabcn)
  })

  test('a TCP socket, with its address as Linux writes it', () => {
    const loopback = [...new Array(12).fill(0), 127, 0, 0, 1]
    const listening = tcpSocket(2, 1, loopback, 1)
    expect(handleIn(listening)).toBe(0xffff_fe00_1234_5678n)
    expect(tcpSocketIn(listening)).toEqual({
      address: '0100007F',
      port: 8_080,
      remotePort: 443,
      listens: true,
    })
    const ipv6 = tcpSocket(2, 2, [...new Array(15).fill(0), 1], 4)
    expect(tcpSocketIn(ipv6)).toMatchObject({ address: `${'0'.repeat(24)}01000000`, listens: false })
    expect(tcpSocketIn(tcpSocket(3, 1, loopback, 1))).toBeNull()
  })

  test('arguments and variables, also of a program whose variables the kernel leaves out', () => {
    const count = [3, 0, 0, 0]
    const head = '/bin/sh\0\0\0\0\0'
    const bytes = (text: string) => Uint8Array.from([...count, ...Buffer.from(text, 'latin1')])
    const all = bytes(`${head}sh\0-c\0\0INVOCATION_ID=abc\0PATH=/bin\0\0ptr_munge=\0`)
    expect(argumentsIn(all)).toEqual({
      commandLine: 'sh\0-c\0\0',
      environment: 'INVOCATION_ID=abc\0PATH=/bin\0',
    })
    expect(argumentsIn(bytes(`${head}sh\0-c\0true\0`))).toEqual({
      commandLine: 'sh\0-c\0true\0',
      environment: '',
    })
    expect(argumentsIn(new Uint8Array())).toEqual({ commandLine: '', environment: '' })
  })
})

/** A process of a lineage: its numbers are a hundred times its pid. */
const one = (pid: number, parent: number, startedBy: number, session = pid) => ({
  pid,
  parent,
  group: pid,
  session,
  startTicks: String(pid),
  identity: { own: BigInt(100 * pid), parent: BigInt(100 * startedBy) },
})

describe('the lineage of orphans', () => {
  const parents = (found: readonly { pid: number; parent: number }[]) =>
    Object.fromEntries(found.map(({ pid, parent }) => [pid, parent]))

  test('leads over ancestors that have ended and were seen', () => {
    const lineage = new Lineage()
    lineage.adopt([one(1, 0, 0), one(10, 1, 1), one(11, 10, 10), one(12, 11, 11)])
    expect(parents(lineage.adopt([one(1, 0, 0), one(10, 1, 1), one(12, 1, 11)]))).toEqual({
      1: 0,
      10: 1,
      12: 10,
    })
  })

  test('leads over the session where an ancestor was never seen', () => {
    const lineage = new Lineage()
    lineage.adopt([one(1, 0, 0), one(10, 1, 1), one(11, 10, 10)])
    const found = [one(1, 0, 0), one(10, 1, 1), one(13, 1, 12, 11), one(14, 1, 12)]
    expect(parents(lineage.adopt(found))).toEqual({ 1: 0, 10: 1, 13: 10, 14: 1 })
  })

  test('is not that of another process with the same pid', () => {
    const lineage = new Lineage()
    lineage.adopt([one(1, 0, 0), one(10, 1, 1)])
    const other = { ...one(10, 1, 1), identity: { own: 5_000n, parent: 100n } }
    expect(parents(lineage.adopt([one(1, 0, 0), other, one(11, 1, 10)]))).toEqual({ 1: 0, 10: 1, 11: 1 })
  })
})

test('this machine’s own system is chosen', () => {
  if (process.platform === 'linux') expect(processes).toBe(linuxProcesses)
  expect(processes.read(process.pid)).toMatchObject({ pid: process.pid, parent: process.ppid })
})

// Linux gives a session's leader the terminal that it opens, too.
test('a shell gives a program the terminal that it opens', async () => {
  const { loadPtyCalls } = await import('../../src/system/calls.ts')
  const calls = loadPtyCalls()
  const { master, slave } = calls.open()
  const name = Bun.spawnSync(['tty'], { stdio: [slave, 'pipe', 'pipe'] })
    .stdout.toString()
    .trim()
  const child = Bun.spawn(
    [...controlOf(name), '/bin/sh', '-c', 'tty </dev/tty; ps -o tpgid= -p $$; echo $$'],
    {
      stdio: [slave, slave, slave],
      detached: true,
    },
  )
  expect(await child.exited).toBe(0)
  const bytes = Buffer.alloc(1_024)
  const output = bytes.toString('latin1', 0, readSync(master, bytes))
  for (const fd of [master, slave]) closeSync(fd)
  const [controlling, foreground, own] = output.trim().split(/\s+/)
  expect([controlling, foreground]).toEqual(['/dev/tty', own])
})
