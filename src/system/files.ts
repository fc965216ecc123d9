/** What systems do differently with files. */
import { constants } from 'node:fs'
import { loadDarwinCopyCalls } from './darwin/calls.ts'
import { loadLinuxCopyCalls } from './linux/files.ts'

/** Whether an inode can be held and reached by a descriptor that only names it, as `openInode` does. */
export const holdsInodes = process.platform === 'linux'

/**
 * The flag of open(2) that refuses links: on Linux as the last name, before which `PinnedEntry` has an inode; on macOS, where it
 * has a real path, as any name of it (O_NOFOLLOW_ANY of sys/fcntl.h).
 */
export const NO_LINKS = process.platform === 'darwin' ? 0x2000_0000 : constants.O_NOFOLLOW

/** Loads the system calls that copy files. Throws if there is no C library. */
export const loadCopyCalls = process.platform === 'darwin' ? loadDarwinCopyCalls : loadLinuxCopyCalls
