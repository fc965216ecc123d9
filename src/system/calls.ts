/** What sandboxd needs of the system. */
import { loadDarwinLibc, loadDarwinPtyCalls } from './darwin/calls.ts'
import { loadDarwinMemoryMeter } from './darwin/memory.ts'
import { loadLinuxLibc } from './linux/calls.ts'
import { loadLinuxMemoryMeter } from './linux/memory.ts'
import { loadLinuxPtyCalls } from './linux/terminals.ts'

/** Loads the system calls of sandboxd; about 0.3 ms. Throws if there is no C library. */
export const loadLibc = process.platform === 'darwin' ? loadDarwinLibc : loadLinuxLibc

/** Loads the system calls for pseudo-terminals; about 0.3 ms. Throws if there is no C library. */
export const loadPtyCalls = process.platform === 'darwin' ? loadDarwinPtyCalls : loadLinuxPtyCalls

/** Loads what measures the memory of a server. Throws if there is no C library. */
export const loadMemoryMeter = process.platform === 'darwin' ? loadDarwinMemoryMeter : loadLinuxMemoryMeter
