import { closeSync } from 'node:fs'
import { messageOf } from '../../runtime/error-info.ts'
import { loadPtyCalls } from '../../system/calls.ts'
import { type DescriptorCalls, loadDescriptorCalls } from '../../system/linux/descriptors.ts'
import type { Pty, PtyCalls } from '../../system/system.ts'
import { ComputeError } from '../sandbox.ts'
import { DESCRIPTORS_FD, type SandboxdConfiguration } from './protocol.ts'

/** Provides sandboxd with terminals. Loads nothing before the first one. */
export class Terminals {
  #calls: PtyCalls | null = null
  #descriptors: DescriptorCalls | null = null

  /** Returns a new terminal: opened here, or received from berth if this process may not open any. */
  open({ receivesTerminals }: SandboxdConfiguration): { pty: Pty; calls: PtyCalls } {
    this.#calls ??= loadPtyCalls()
    return { pty: receivesTerminals ? this.#receive() : this.#calls.open(), calls: this.#calls }
  }

  #receive(): Pty {
    this.#descriptors ??= loadDescriptorCalls()
    const [master, slave] = this.#descriptors.receive(DESCRIPTORS_FD, 2)
    if (master === undefined || slave === undefined) throw new Error('Berth has sent no terminal.')
    return { master, slave }
  }
}

/** Opens terminals for a sandboxd that cannot, and sends it both ends. Berth's side; reads nothing. */
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
