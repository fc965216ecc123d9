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
export interface OpenHeartbeat extends Heartbeat {
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
    const prefix = `berth-${process.getuid?.() ?? 0}-`
    // By its number, so the directory may be moved.
    const { dev, ino } = statSync(dataDir)
    const name = `${prefix}${dev}-${ino}`
    removeAbandoned(prefix, name)
    return openFile(join(MEMORY_DIR, name), dataDir)
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

/** Removes the files of killed berths whose data directories were removed, but for the one with this name. */
function removeAbandoned(prefix: string, own: string): void {
  for (const name of readdirSync(MEMORY_DIR)) {
    if (!name.startsWith(prefix) || name === own) continue
    const path = join(MEMORY_DIR, name)
    try {
      const dataDir = readFileSync(path).subarray(TIME_BYTES).toString()
      if (dataDir !== '' && !existsSync(dataDir)) rmSync(path, { force: true })
    } catch {
      // Another berth has removed it.
    }
  }
}
