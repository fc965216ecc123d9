import { ptr } from 'bun:ffi'
import { readdirSync, readlinkSync, statfsSync, statSync } from 'node:fs'
import { codeOf } from '../../runtime/error-info.ts'
import { ifPresent, readTextOrNull } from '../../runtime/if-present.ts'
import { once } from '../../runtime/once.ts'
import { signal } from '../../runtime/signal.ts'
import { openLibc } from '../libc.ts'
import type { MemoryMeter, MemoryScope, ServerMemory } from '../system.ts'
import { loadSocketMeter, type SocketMemory, type SocketMeter } from './socket-memory.ts'

/** Absolute paths of the file systems that a sandbox with namespaces has for itself: in memory, or on a pod's disk. */
const OWN_MOUNTS = ['/tmp', '/dev/shm', '/run']

const IPC_RMID = 0

/** Positions in sysinfo(2)'s structure on 64-bit systems: in words of 8 bytes, and of 4 bytes for the unit. */
const SYSINFO_WORDS = 16
const SYSINFO_SHARED = 6
const SYSINFO_SWAP = 8
const SYSINFO_FREE_SWAP = 9
const SYSINFO_UNIT = 26

/** The parts of a sandbox that only its server uses. */
interface PrivateMemory {
  /** Absolute paths of file systems in memory. */
  readonly mounts: readonly string[]
  /**
   * Whether all System V objects are the server's; else only the shared memory that a living process of it created is, and
   * semaphores and queues are not counted.
   */
  readonly ownSegments: boolean
  /** Measures the sockets of the server's own network; null if it has none. */
  readonly sockets: SocketMeter | null
  /** Whether the filter of system calls keeps programs from hiding their descriptors. */
  readonly descriptorsShown: boolean
}

/** System calls that measure and free memory. */
interface MemoryCalls {
  /**
   * Returns the machine's memory, in bytes, that belongs to files in memory and shared segments, or may have been
   * swapped out: no program has more of it.
   */
  sharedMemory(): number
  /**
   * Removes a System V object. The memory of a shared segment is free when nobody has it attached (shmctl(2), semctl(2),
   * msgctl(2)).
   */
  removeObject(kind: 'segment' | 'semaphores' | 'queue', id: number): void
}

/** Loads what measures the memory of a server. Throws if there is no C library. */
export function loadLinuxMemoryMeter({ namespaces, network, descriptorsShown }: MemoryScope): MemoryMeter {
  const sockets = network ? loadSocketMeter() : null
  const mounts = namespaces ? OWN_MOUNTS : []
  const scope = { mounts, ownSegments: namespaces, sockets, descriptorsShown }
  const calls = once(loadMemoryCalls)
  return {
    measure: (pids, limit) => measureMemory(pids, limit, scope, calls()),
    sockets: sockets && {
      most: sockets.most,
      measure: (find, limit) => measureSockets(find, limit, sockets),
    },
  }
}

function loadMemoryCalls(): MemoryCalls {
  const { sysinfo, shmctl, semctl, msgctl } = openLibc({
    sysinfo: { args: ['ptr'], returns: 'int' },
    shmctl: { args: ['int', 'int', 'ptr'], returns: 'int' },
    semctl: { args: ['int', 'int', 'int'], returns: 'int' },
    msgctl: { args: ['int', 'int', 'ptr'], returns: 'int' },
  })
  return {
    sharedMemory() {
      const info = new BigUint64Array(SYSINFO_WORDS)
      if (sysinfo(ptr(info)) !== 0) return Number.POSITIVE_INFINITY
      const word = (at: number): number => Number(info[at] ?? 0n)
      const unit = new Uint32Array(info.buffer)[SYSINFO_UNIT] || 1
      return (word(SYSINFO_SHARED) + word(SYSINFO_SWAP) - word(SYSINFO_FREE_SWAP)) * unit
    },
    removeObject(kind, id) {
      if (kind === 'segment') shmctl(id, IPC_RMID, null)
      else if (kind === 'semaphores') semctl(id, 0, IPC_RMID)
      else msgctl(id, IPC_RMID, null)
    },
  }
}

/** Kernel memory of a file in memory, besides its content; about what an inode and its name take. */
const INODE_BYTES = 1024

/** Kernel memory of System V objects: of each, a semaphore, what a process may undo in a set, and a message's head. */
const OBJECT_BYTES = 512
const SEMAPHORE_BYTES = 64
const UNDO_BYTES = 128
const MESSAGE_BYTES = 64

/**
 * Measures a server's memory: what its processes have mapped and their page tables, and what no process needs to have
 * mapped to hold it: files in memory that have no name (memfd_create(2), or deleted), System V objects, which outlive
 * their process, the file systems in memory, and unread data in sockets. What several processes share is counted once.
 *
 * Looks at more than the processes' own figures only if the machine has enough such memory for the limit to be exceeded.
 */
function measureMemory(
  pids: readonly number[],
  limit: number,
  { mounts, ownSegments, sockets, descriptorsShown }: PrivateMemory,
  calls: MemoryCalls,
): ServerMemory {
  const processes = pids.map(readUsage)
  const own = sum(processes.map(({ own }) => own))
  const inKernel = [...(ownSegments ? readKernelObjects(pids.length, calls) : [])]
  // What the machine's shared memory does not show.
  const unseen = sum([...mounts.map(inodeBytes), ...inKernel.map(({ bytes }) => bytes)])
  const possible = own + calls.sharedMemory() + unseen + (sockets?.most() ?? 0)
  if (possible <= limit) return { bytes: possible, holders: [] }
  const segments = readSegments().filter(({ creator }) => ownSegments || pids.includes(creator))
  const devices = mounts.map(deviceOf)
  const unread: SocketMemory = sockets?.measure() ?? new Map()
  const files = new Map<string, number>()
  const holders: Array<ServerMemory['holders'][number] & { hides?: true }> = processes.map(
    ({ pid, directory, own, shared }) => {
      const end = (): void => signal(pid, 'SIGKILL')
      const links = readDescriptors(directory)
      // A program has to be unreadable to hide them nevertheless. What it holds is not known, so it goes first.
      if (links === null && descriptorsShown) return { bytes: limit + 1, end, hides: true }
      const held = statUnnamedFiles(links ?? [], devices)
      if (shared > 0) addMappedFiles(directory, devices, held)
      for (const [file, bytes] of held) files.set(file, Math.max(bytes, files.get(file) ?? 0))
      return { bytes: own + Math.max(shared, sum([...held.values()])) + bytesInSockets(links, unread), end }
    },
  )
  for (const { id, bytes, attached } of segments) {
    if (!attached) holders.push({ bytes, end: () => calls.removeObject('segment', id) })
  }
  holders.push(...inKernel)
  const objects = [...segments, ...inKernel].map(({ bytes }) => bytes)
  const shared = [...files.values(), ...objects, ...mounts.map(usedBytes)]
  const hiding = holders.filter(({ hides }) => hides).map(({ bytes }) => bytes)
  return { bytes: own + sum([...shared, ...unread.values(), ...hiding]), holders }
}

/**
 * Measures what a network of the server's own holds that a cgroup does not count, and some that it does.
 *
 * @param find lists the server's processes; called only if they exceed the limit
 */
function measureSockets(find: () => number[], limit: number, sockets: SocketMeter): ServerMemory {
  const unread = sockets.measureUncounted()
  const bytes = sum([...unread.values()])
  if (bytes <= limit) return { bytes, holders: [] }
  const holders = find().map((pid) => ({
    bytes: bytesInSockets(readDescriptors(liveDirectory(pid)), unread),
    end: () => signal(pid, 'SIGKILL'),
  }))
  return { bytes, holders }
}

/** Returns the unread data in the sockets of a process. */
function bytesInSockets(links: readonly DescriptorLink[] | null, unread: SocketMemory): number {
  const found = new Set(links?.map(({ target }) => target).filter((target) => unread.has(target)))
  return sum([...found].map((target) => unread.get(target) ?? 0))
}

/** What a process has mapped, in bytes. */
interface ProcessUsage {
  readonly pid: number
  /** Where /proc shows what it has: see `liveDirectory`. */
  readonly directory: string
  /** Only its own pages, and its page tables. */
  readonly own: number
  /** Pages of files in memory and of shared segments. */
  readonly shared: number
}

function readUsage(pid: number): ProcessUsage {
  const directory = liveDirectory(pid)
  const status = textOf(`${directory}/status`)
  const bytesOf = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) * 1024
  return { pid, directory, own: bytesOf('RssAnon') + bytesOf('VmPTE'), shared: bytesOf('RssShmem') }
}

/**
 * Returns the directory of /proc that shows a process's memory and descriptors. Its own is empty when its first thread
 * has ended; then it is that of a thread that goes on.
 */
function liveDirectory(pid: number): string {
  const own = `/proc/${pid}`
  if (!/^State:\tZ/m.test(textOf(`${own}/status`))) return own
  const threads = ifPresent(() => readdirSync(`${own}/task`)) ?? []
  const living = threads
    .map((thread) => `${own}/task/${thread}`)
    .find((thread) => /^RssAnon:/m.test(textOf(`${thread}/status`)))
  return living ?? own
}

/** A descriptor of a process: its path in /proc, and what it leads to. */
interface DescriptorLink {
  readonly path: string
  readonly target: string
}

/**
 * Returns the descriptors of a process; null if it hides them (PR_SET_DUMPABLE).
 *
 * @param directory its directory in /proc
 */
function readDescriptors(directory: string): DescriptorLink[] | null {
  try {
    const dir = `${directory}/fd`
    return readdirSync(dir).flatMap((fd) => {
      const path = `${dir}/${fd}`
      const target = ifPresent(() => readlinkSync(path))
      return target === null ? [] : [{ path, target }]
    })
  } catch (error) {
    return codeOf(error) === 'EACCES' ? null : []
  }
}

/** Returns the bytes of files in memory that have no name, by device and inode. */
function statUnnamedFiles(
  links: readonly DescriptorLink[],
  countedDevices: readonly number[],
): Map<string, number> {
  const found = new Map<string, number>()
  for (const { path, target } of links) {
    try {
      if (!target.endsWith(' (deleted)')) continue
      const { dev, ino, blocks } = statSync(path)
      if (!countedDevices.includes(dev) && isInMemory(path)) found.set(`${dev}:${ino}`, blocks * 512)
    } catch {
      // It was closed, or the process has ended.
    }
  }
  return found
}

/** The head of a mapping in smaps (proc_pid_smaps(5)): its device, inode and file. */
const MAPPING = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+)\s*(.*)$/

/** Adds the bytes of files in memory that a process has mapped, perhaps without having them open, by device and inode. */
function addMappedFiles(
  directory: string,
  countedDevices: readonly number[],
  held: Map<string, number>,
): void {
  const mapped = new Map<string, number>()
  let file: string | null = null
  for (const line of textOf(`${directory}/smaps`).split('\n')) {
    const [, major = '', minor = '', inode = '0', name = ''] = MAPPING.exec(line) ?? []
    if (major !== '') {
      const device = deviceNumber(Number.parseInt(major, 16), Number.parseInt(minor, 16))
      const isUnnamed = name.endsWith(' (deleted)') && !name.startsWith('/SYSV')
      file = isUnnamed && !countedDevices.includes(device) ? `${device}:${inode}` : null
    } else if (file !== null && line.startsWith('Rss:')) {
      mapped.set(file, (mapped.get(file) ?? 0) + Number.parseInt(line.slice(4), 10) * 1024)
    }
  }
  for (const [key, bytes] of mapped) held.set(key, Math.max(bytes, held.get(key) ?? 0))
}

/** Returns a device's number as stat(2) has it (makedev(3)). */
const deviceNumber = (major: number, minor: number): number =>
  ((major & 0xfff) << 8) | (minor & 0xff) | ((minor & 0xfff00) << 12)

const TMPFS_MAGIC = 0x01021994

const isInMemory = (path: string): boolean => statfsSync(path).type === TMPFS_MAGIC

function deviceOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.dev ?? -1
}

function usedBytes(path: string): number {
  try {
    const { type, bsize, blocks, bfree } = statfsSync(path)
    return type === TMPFS_MAGIC ? (blocks - bfree) * bsize + inodeBytes(path) : 0
  } catch {
    // It was unmounted meanwhile.
    return 0
  }
}

/** Returns the kernel's memory for the names of a file system in memory. The machine's shared memory does not show it. */
function inodeBytes(path: string): number {
  try {
    const { type, files, ffree } = statfsSync(path)
    return type === TMPFS_MAGIC ? (files - ffree) * INODE_BYTES : 0
  } catch {
    // It was unmounted meanwhile.
    return 0
  }
}

/** A System V shared memory segment. */
interface Segment {
  readonly id: number
  /** Pid of the process that made it. */
  readonly creator: number
  readonly bytes: number
  /** Whether a process has it attached, and so ends with it. */
  readonly attached: boolean
}

function readSegments(): Segment[] {
  return readObjects('shm').map((value) => {
    const bytes = value('rss') + value('swap')
    return { id: value('shmid'), creator: value('cpid'), bytes, attached: value('nattch') > 0 }
  })
}

/**
 * Returns the System V semaphores and message queues of a namespace of its own, with at least what they take of the kernel's
 * memory.
 *
 * @param processes the number of processes, each of which can have a record of each set (SEM_UNDO of semop(2))
 */
function readKernelObjects(
  processes: number,
  calls: Pick<MemoryCalls, 'removeObject'>,
): ServerMemory['holders'][number][] {
  const sets = readObjects('sem').map((value) => ({
    bytes: OBJECT_BYTES + value('nsems') * SEMAPHORE_BYTES + processes * (UNDO_BYTES + 2 * value('nsems')),
    end: () => calls.removeObject('semaphores', value('semid')),
  }))
  const queues = readObjects('msg').map((value) => ({
    bytes: OBJECT_BYTES + value('cbytes') + value('qnum') * MESSAGE_BYTES,
    end: () => calls.removeObject('queue', value('msqid')),
  }))
  return [...sets, ...queues]
}

/** Returns the lines of a list of System V objects, each as a function that returns the number in a column. */
function readObjects(kind: 'shm' | 'sem' | 'msg'): Array<(column: string) => number> {
  const [head = '', ...lines] = textOf(`/proc/sysvipc/${kind}`).trim().split('\n')
  const columns = head.trim().split(/\s+/)
  return lines.map((line) => {
    const values = line.trim().split(/\s+/)
    return (column) => Number(values[columns.indexOf(column)] ?? 0)
  })
}

/** Returns a text of /proc; none if the process has ended, or the kernel has no such file. */
const textOf = (path: string): string => readTextOrNull(path) ?? ''

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)
