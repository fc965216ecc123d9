import { Fields } from './fields.ts'
import { HEAD_LIMIT } from './head.ts'

/**
 * Memory shared by the connections of a gateway to read and write heads, which saves an allocation per message. Use a
 * head before you read the next one, which overwrites it.
 */
export class HeadMemory {
  /** Fields of the head that was read last. */
  readonly fields = new Fields()
  /** Buffer to assemble messages in. A writer copies the bytes that it cannot send at once. */
  readonly scratch = Buffer.allocUnsafeSlow(4 * HEAD_LIMIT)
}
