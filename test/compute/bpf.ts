/** What seccomp(2) shows a filter about a system call. */
export interface SystemCall {
  /** Its number. */
  number: number
  /** The architecture, as of audit(7). */
  arch: number
  /** The arguments, 64 bits each; 0 for those that are missing. */
  args?: readonly bigint[]
}

const LOAD_WORD = 0x20
const AND = 0x54
const JUMP = 0x05
const RETURN = 0x06
/** Conditional jumps by their codes: whether the accumulator fulfils the condition. */
const CONDITIONS: Readonly<Record<number, (accumulator: number, operand: number) => boolean>> = {
  21: (accumulator, operand) => accumulator === operand,
  37: (accumulator, operand) => accumulator > operand,
  53: (accumulator, operand) => accumulator >= operand,
  69: (accumulator, operand) => (accumulator & operand) !== 0,
}

const INSTRUCTION_BYTES = 8
const CALL_BYTES = 64

/**
 * Runs a filter as the kernel does, see linux/filter.h and seccomp(2), and returns its result. Throws an `Error` where
 * the kernel would not take the filter, or the filter has an instruction that this machine lacks.
 *
 * @param filter an array of `struct sock_filter`
 */
export function runFilter(filter: Uint8Array, call: SystemCall): number {
  const program = new DataView(filter.buffer, filter.byteOffset, filter.length)
  const data = structOf(call)
  let accumulator = 0
  // Jumps lead forward only, so it ends.
  for (let at = 0; at + INSTRUCTION_BYTES <= filter.length; at += INSTRUCTION_BYTES) {
    const code = program.getUint16(at, true)
    const operand = program.getUint32(at + 4, true)
    const condition = CONDITIONS[code]
    if (code === RETURN) return operand
    else if (code === LOAD_WORD) accumulator = load(data, operand)
    else if (code === AND) accumulator = (accumulator & operand) >>> 0
    else if (code === JUMP) at += operand * INSTRUCTION_BYTES
    else if (condition !== undefined) {
      at += program.getUint8(condition(accumulator, operand) ? at + 2 : at + 3) * INSTRUCTION_BYTES
    } else throw new Error(`no instruction ${code}`)
  }
  throw new Error('the filter ends without a result')
}

/** `struct seccomp_data`: the number, the architecture, the instruction's address and six arguments. */
function structOf({ number, arch, args = [] }: SystemCall): DataView {
  const view = new DataView(new ArrayBuffer(CALL_BYTES))
  view.setUint32(0, number, true)
  view.setUint32(4, arch, true)
  args.forEach((argument, index) => {
    view.setBigUint64(16 + 8 * index, BigInt.asUintN(64, argument), true)
  })
  return view
}

function load(data: DataView, offset: number): number {
  if (offset % 4 !== 0) throw new Error(`the kernel loads aligned words only, not at ${offset}`)
  return data.getUint32(offset, true)
}
