/** What systems do differently with files. */
import { loadDarwinCopyCalls } from './darwin/calls.ts'
import { loadLinuxCopyCalls } from './linux/files.ts'

/** Whether an inode can be held and reached by a descriptor that only names it, as `openInode` does. */
export const holdsInodes = process.platform === 'linux'

/** Loads the system calls that copy files. Throws if there is no C library. */
export const loadCopyCalls = process.platform === 'darwin' ? loadDarwinCopyCalls : loadLinuxCopyCalls
