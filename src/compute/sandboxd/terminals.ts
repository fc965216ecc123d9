import { type DescriptorCalls, loadDescriptorCalls } from './descriptors.ts'
import { type SandboxdConfiguration, TERMINALS_FD } from './protocol.ts'
import { loadPtyCalls, type Pty, type PtyCalls } from './pty.ts'

/** Where sandboxd has its terminals from. Nothing is loaded before the first one. */
export class Terminals {
  #calls: PtyCalls | null = null
  #descriptors: DescriptorCalls | null = null

  /** A new terminal: opened here or, where this process may not, by berth, which has sent it already. */
  open({ receivesTerminals }: SandboxdConfiguration): { pty: Pty; calls: PtyCalls } {
    this.#calls ??= loadPtyCalls()
    return { pty: receivesTerminals ? this.#receive() : this.#calls.open(), calls: this.#calls }
  }

  #receive(): Pty {
    this.#descriptors ??= loadDescriptorCalls()
    const [master = -1, slave = -1] = this.#descriptors.receive(TERMINALS_FD, 2)
    return { master, slave }
  }
}
