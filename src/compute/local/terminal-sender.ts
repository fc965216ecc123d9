import { closeSync } from 'node:fs'
import { messageOf } from '../../runtime/error-info.ts'
import { ComputeError } from '../driver.ts'
import { type DescriptorCalls, loadDescriptorCalls } from '../sandboxd/descriptors.ts'
import { loadPtyCalls, type PtyCalls } from '../sandboxd/pty.ts'

/** Opens terminals for a sandboxd that cannot, and sends it both ends. Reads nothing from it. */
export class TerminalSender {
  readonly #socket: number
  #calls: { pty: PtyCalls; descriptors: DescriptorCalls } | null = null
  #closed = false

  /** Takes ownership of `socket`. */
  constructor(socket: number) {
    this.#socket = socket
  }

  /**
   * Sends a new terminal, for the next command that asks for one.
   *
   * @throws ComputeError
   */
  send(): void {
    if (this.#closed) return
    this.#calls ??= { pty: loadPtyCalls(), descriptors: loadDescriptorCalls() }
    const { pty, descriptors } = this.#calls
    try {
      const { master, slave } = pty.open()
      try {
        descriptors.send(this.#socket, [master, slave])
      } finally {
        closeSync(master)
        closeSync(slave)
      }
    } catch (error) {
      const why = messageOf(error)
      throw new ComputeError(`No terminal for the server: ${why}`, { cause: error })
    }
  }

  /** Closes the socket; may be called again. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    closeSync(this.#socket)
  }
}
