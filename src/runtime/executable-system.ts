/** Processors in the header of an ELF file (e_machine, elf(5)). */
const ELF_MACHINES: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64' }
/** Processors in the header of a Mach-O file (cputype, mach/machine.h). */
const MACH_PROCESSORS: Readonly<Record<number, string>> = { 16777223: 'x64', 16777228: 'arm64' }
const ELF = 0x7f454c46
const MACH_O = 0xfeedfacf

/** Bytes of an ELF file within which the path of its loader is, which tells the C library. */
export const EXECUTABLE_HEAD = 4096

/**
 * Returns the system that an executable is for, named as archives of releases are, such as `linux-x64-musl`; null if it is
 * no executable that berth knows.
 *
 * @param program the whole of it, or its first `EXECUTABLE_HEAD` bytes
 */
export function executableSystem(program: Uint8Array): string | null {
  if (program.length < EXECUTABLE_HEAD) return null
  const header = Buffer.from(program.buffer, program.byteOffset, EXECUTABLE_HEAD)
  if (header.readUInt32BE(0) === ELF) {
    const processor = ELF_MACHINES[header.readUInt16LE(18)]
    if (processor === undefined) return null
    return `linux-${processor}${header.includes('/ld-musl-') ? '-musl' : ''}`
  }
  if (header.readUInt32LE(0) !== MACH_O) return null
  const processor = MACH_PROCESSORS[header.readUInt32LE(4)]
  return processor === undefined ? null : `darwin-${processor}`
}
