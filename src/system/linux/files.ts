import { ptr } from 'bun:ffi'
import { closeSync, fstatSync, openSync, type Stats } from 'node:fs'
import { textOrEmpty } from '../../runtime/if-present.ts'
import { openLibc } from '../libc.ts'
import type { CopyCalls } from '../system.ts'

/** A descriptor that only names an inode. Opening so never blocks, has no side effect, and needs no permission on the entry. */
const O_PATH = 0o10000000

/** Of lseek(2). */
const SEEK_DATA = 3
const SEEK_HOLE = 4

/** Of ioctl_ficlone(2). */
const FICLONE = 0x40049409

/** The number of getdents64(2), by processor. */
const GETDENTS = process.arch === 'arm64' ? 61 : 217

/** Reports whether the C library of this process is musl. */
export const isMusl = (): boolean => textOrEmpty('/proc/self/maps').includes('/ld-musl-')

/** Returns the path by which this process reaches what a descriptor of it names. */
export const descriptorPath = (descriptor: number): string => `/proc/self/fd/${descriptor}`

/**
 * Opens an inode only to name it: whatever replaces it in its directory, `path` leads to it until the descriptor is closed.
 *
 * @param flags of open(2), such as `O_NOFOLLOW`
 * @throws the system's error
 */
export function openInode(
  path: string | Buffer,
  flags: number,
): { path: string; stats: Stats; descriptor: number } {
  const descriptor = openSync(path, O_PATH | flags)
  try {
    return { path: descriptorPath(descriptor), stats: fstatSync(descriptor), descriptor }
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

/**
 * Returns a function that reads the next entries of a directory (getdents64(2)). It returns the number of bytes; 0 at the
 * end. Throws if there is no C library.
 */
export function loadReadDirectory(): (descriptor: number, bytes: Buffer) => number {
  const { syscall } = openLibc({ syscall: { args: ['i64', 'i64', 'ptr', 'i64'], returns: 'i64' } })
  return (descriptor, bytes) => Number(syscall(GETDENTS, descriptor, ptr(bytes), bytes.length))
}

/** Loads the system calls that copy files. Throws if there is no C library. */
export function loadLinuxCopyCalls(): CopyCalls {
  const { lseek, ioctl } = openLibc({
    lseek: { args: ['int', 'i64', 'int'], returns: 'i64' },
    ioctl: { args: ['int', 'u64', 'int'], returns: 'int' },
  })
  return {
    data: (descriptor, offset) => Number(lseek(descriptor, offset, SEEK_DATA)),
    hole: (descriptor, offset) => Number(lseek(descriptor, offset, SEEK_HOLE)),
    share: (from, copy) => ioctl(copy, FICLONE, from) === 0,
  }
}
