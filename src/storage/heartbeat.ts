import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../runtime/if-present.ts'

/** Linux's file system in memory that every user may write: a kill of berth loses nothing in it. */
const MEMORY_DIR = '/dev/shm'

/** The type of such a file system, as statfs(2) reports it. */
const TMPFS = 0x0102_1994

/** Bytes of the time at the start of the file. The path of the data directory follows. */
const TIME_BYTES = 8

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
    // Anybody may have made a file of this name.
    if (!stat.isFile() || stat.nlink !== 1 || stat.uid !== process.getuid?.()) return null
    if (stat.size < TIME_BYTES) writeSync(fd, new Uint8Array(TIME_BYTES), 0, TIME_BYTES, 0)
    const written = writeSync(fd, dataDir, TIME_BYTES)
    ftruncateSync(fd, TIME_BYTES + written)
    const mapped = Bun.mmap(`/proc/self/fd/${fd}`, { shared: true })
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
      const dataDir = readFileSync(path).subarray(TIME_BYTES).toString()
      return dataDir === '' || existsSync(dataDir) ? [] : [{ path, dataDir }]
    } catch {
      // Another berth has removed it, or another user has made it.
      return []
    }
  })
}

/** The start of the names of this user's files. */
const prefix = (): string => `berth-${process.getuid?.() ?? 0}-`
