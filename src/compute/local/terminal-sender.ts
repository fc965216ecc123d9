import { closeSync } from 'node:fs'
import { ComputeError } from '../driver.ts'
import { type DescriptorCalls, loadDescriptorCalls } from '../sandboxd/descriptors.ts'
import { loadPtyCalls, type PtyCalls } from '../sandboxd/pty.ts'

/** Opens terminals for an agent that may not, and sends it both their ends. Nothing is read of the agent's. */
export class TerminalSender {
  readonly #socket: number
  #calls: { pty: PtyCalls; descriptors: DescriptorCalls } | null = null
  #closed = false

  /** `socket` belongs to it from here on. */
  constructor(socket: number) {
    this.#socket = socket
  }

  /** Sends a new terminal, for the next command that asks for one. @throws ComputeError */
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
      const why = error instanceof Error ? error.message : String(error)
      throw new ComputeError(`No terminal for the server: ${why}`, { cause: error })
    }
  }

  /** Calling it again is harmless. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    closeSync(this.#socket)
  }
}
