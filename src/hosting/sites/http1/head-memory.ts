import { Fields } from './fields.ts'
import { HEAD_LIMIT } from './head.ts'

/**
 * Memory in which the heads of a gateway's connections are read and written, so that none is allocated per message.
 * Use a head before you read the next one, which overwrites it.
 */
export class HeadMemory {
  /** Fields of the head that was read last. */
  readonly fields = new Fields()
  /** Where messages are put together. A writer copies what it cannot send at once. */
  readonly scratch = Buffer.allocUnsafeSlow(4 * HEAD_LIMIT)
}
