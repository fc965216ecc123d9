import { darwinProcesses } from './darwin/processes.ts'
import { linuxProcesses } from './linux/processes.ts'
import type { Processes } from './system.ts'

/** The processes of this machine. */
export const processes: Processes = process.platform === 'darwin' ? darwinProcesses() : linuxProcesses
