import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../runtime/if-present.ts'
import { descriptorPath } from '../system/linux/files.ts'

/** Linux's file system in memory that every user may write: a kill of berth loses nothing in it. */
const MEMORY_DIR = '/dev/shm'

/** The type of such a file system, as statfs(2) reports it. */
const TMPFS = 0x0102_1994

/** Bytes of the time at the start of the file. The path of the data directory follows. */
const TIME_BYTES = 8

/** Most bytes of a path (PATH_MAX of limits.h). */
const PATH_BYTES = 4_096

/** A time that a kill of this process leaves behind, noted without a system call or a write to a disk. */
export interface Heartbeat {
  /** Returns the last noted time, milliseconds since 1970, or null if there is none; forgets it. */
  take(): number | null
  /** Notes a time. */
  beat(at: number): void
}

/** For a data directory that nobody uses after a kill. */
export const NO_HEARTBEAT: Heartbeat = { take: () => null, beat() {} }

/** A heartbeat that its owner closes. */
interface OpenHeartbeat extends Heartbeat {
  /** Removes the file. */
  close(): void
}

/**
 * Opens the heartbeat of a data directory, a mapped file in memory. Removes those of directories that are gone.
 *
 * @returns null if this system has no file system in memory, or another user took the name
 */
export function openHeartbeat(dataDir: string): OpenHeartbeat | null {
  try {
    if (statfsSync(MEMORY_DIR).type !== TMPFS) return null
    // By its number, so the directory may be moved.
    const { dev, ino } = statSync(dataDir)
    const path = join(MEMORY_DIR, `${prefix()}${dev}-${ino}`)
    for (const abandoned of findAbandonedHeartbeats()) {
      if (abandoned.path !== path) rmSync(abandoned.path, { force: true })
    }
    return openFile(path, dataDir)
  } catch {
    return null
  }
}

/** @throws the system's error */
function openFile(path: string, dataDir: string): OpenHeartbeat | null {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    const stat = fstatSync(fd)
    if (!isOwn(stat)) return null
    if (stat.size < TIME_BYTES) writeSync(fd, new Uint8Array(TIME_BYTES), 0, TIME_BYTES, 0)
    const written = writeSync(fd, dataDir, TIME_BYTES)
    ftruncateSync(fd, TIME_BYTES + written)
    const mapped = Bun.mmap(descriptorPath(fd), { shared: true })
    const time = new Float64Array(mapped.buffer, mapped.byteOffset, 1)
    return {
      take() {
        const [last = 0] = time
        time[0] = 0
        return last > 0 ? last : null
      },
      beat(at) {
        time[0] = at
      },
      close: () => rmSync(path, { force: true }),
    }
  } finally {
    closeSync(fd)
  }
}

/** The file of a heartbeat that nothing needs. */
interface AbandonedHeartbeat {
  readonly path: string
  /** The data directory, which is gone. */
  readonly dataDir: string
}

/**
 * Returns the heartbeats that killed berths of this user left for data directories that are gone. One whose directory
 * exists is needed: the next start charges servers until its time.
 */
export function findAbandonedHeartbeats(): AbandonedHeartbeat[] {
  const own = prefix()
  const names = (ifPresent(() => readdirSync(MEMORY_DIR)) ?? []).filter((name) => name.startsWith(own))
  return names.flatMap((name) => {
    const path = join(MEMORY_DIR, name)
    try {
      const dataDir = readDataDir(path)
      return dataDir === '' || existsSync(dataDir) ? [] : [{ path, dataDir }]
    } catch {
      // Another berth has removed it, or another user has made it.
      return []
    }
  })
}

/** Returns the data directory in a heartbeat's file; an empty text if it is no file of this user. */
function readDataDir(path: string): string {
  // Opening a FIFO would otherwise wait without end.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!isOwn(fstatSync(fd))) return ''
    const bytes = Buffer.alloc(PATH_BYTES)
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, PATH_BYTES, TIME_BYTES))
  } finally {
    closeSync(fd)
  }
}

/** Reports whether something is a file of this user. Anybody may have made one of any name. */
const isOwn = (stat: Stats): boolean => stat.isFile() && stat.nlink === 1 && stat.uid === process.getuid?.()

/** The start of the names of this user's files. */
const prefix = (): string => `berth-${process.getuid?.() ?? 0}-`
