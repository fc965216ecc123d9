import { type ReadonlySignal, signal } from '@preact/signals'
import { messageOf } from '../../runtime/error-info.ts'

/** A sentence about something that was done or failed. */
interface Notice {
  readonly id: number
  readonly text: string
  readonly isFailure: boolean
  /** What a person may do about it: undo it, mostly. Or where the thing is that it is about. */
  readonly action?:
    | { readonly label: string; readonly run: () => void }
    | { readonly label: string; readonly href: string }
}

/** Milliseconds for which a notice of a success is shown. Failures stay until they are dismissed. */
const SHOWN_MS = 6_000

/** The notices in the corner of the page. */
export class Notices {
  readonly #all = signal<readonly Notice[]>([])
  #next = 1

  /** The notices that are shown, the oldest first. */
  get all(): ReadonlySignal<readonly Notice[]> {
    return this.#all
  }

  /** Shows a success. */
  done(text: string, action?: Notice['action']): void {
    const id = this.#add({ text, isFailure: false, ...(action && { action }) })
    setTimeout(() => this.dismiss(id), SHOWN_MS)
  }

  /** Shows a failure. */
  failed(error: unknown): void {
    this.#add({ text: messageOf(error), isFailure: true })
  }

  /** Runs an action, and shows its failure. Resolves to whether it succeeded. */
  async attempt(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action()
      return true
    } catch (error) {
      this.failed(error)
      return false
    }
  }

  /** Removes the notices of a screen that is left. Those stay that offer to undo what was done. */
  leaveScreen(): void {
    this.#all.value = this.#all.peek().filter(({ action }) => action !== undefined && 'run' in action)
  }

  /** Removes a notice. */
  dismiss(id: number): void {
    this.#all.value = this.#all.peek().filter((one) => one.id !== id)
  }

  #add(notice: Omit<Notice, 'id'>): number {
    const id = this.#next
    this.#next += 1
    this.#all.value = [...this.#all.peek().slice(-4), { ...notice, id }]
    return id
  }
}
