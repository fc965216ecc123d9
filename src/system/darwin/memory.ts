import { ptr } from 'bun:ffi'
import { signal } from '../../runtime/signal.ts'
import { openLibc } from '../libc.ts'
import type { MemoryMeter } from '../system.ts'

/** `struct rusage_info_v0` of sys/resource.h: its flavor, its length, and where `ri_phys_footprint` is. */
const RUSAGE_INFO_V0 = 0
const RUSAGE_BYTES = 96
const FOOTPRINT = 72

/**
 * Loads what measures the memory of a server: the footprints of its processes, in which the kernel counts what is
 * compressed and leaves out what is shared. Throws if there is no C library.
 */
export function loadDarwinMemoryMeter(): MemoryMeter {
  const { proc_pid_rusage } = openLibc({
    proc_pid_rusage: { args: ['int', 'int', 'ptr'], returns: 'int' },
  })
  const footprintOf = (pid: number): number => {
    const usage = new Uint8Array(RUSAGE_BYTES)
    return proc_pid_rusage(pid, RUSAGE_INFO_V0, ptr(usage)) === 0 ? footprintIn(usage) : 0
  }
  return {
    measure(pids) {
      const holders = pids.map((pid) => ({ bytes: footprintOf(pid), end: () => signal(pid, 'SIGKILL') }))
      return { bytes: holders.reduce((sum, { bytes }) => sum + bytes, 0), holders }
    },
    sockets: null,
  }
}

/** Returns the bytes of memory in a `struct rusage_info_v0`. */
export const footprintIn = (usage: Uint8Array): number =>
  Number(new DataView(usage.buffer, usage.byteOffset).getBigUint64(FOOTPRINT, true))
