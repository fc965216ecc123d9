import type { DashboardContext } from '../../http/dashboard/page.ts'

/** The page that a browser opens after it was signed out on this one. */
const SIGNED_OUT = '/signin?done=signed-out'

/**
 * The session that the page was opened with. Leaves the page when it is over. Several parts notice its end at
 * nearly the same time: the page is left once, because each navigation would cancel the one before.
 */
export class Session {
  #isLeaving = false
  #isEndedHere = false

  /** Leaves the page: it is loaded again, which leads to the sign-in and back. */
  leave(): void {
    if (this.#isLeaving) return
    this.#isLeaving = true
    if (this.#isEndedHere) location.assign(SIGNED_OUT)
    else location.reload()
  }

  /** Leaves the page if the session is over. A 401 alone does not show that: a fault may respond in place of the API. */
  async leaveIfOver(): Promise<void> {
    if (this.#isLeaving) return
    const page = await fetch(location.pathname, { redirect: 'manual' }).catch(() => null)
    if (page?.type === 'opaqueredirect') this.leave()
  }

  /**
   * Ends the session by `signOut` and leaves the page for the one that says so.
   *
   * @throws what `signOut` throws; the page stays then
   */
  async end(signOut: () => Promise<unknown>): Promise<void> {
    // Before the call: the stream may report the end before the response arrives.
    this.#isEndedHere = true
    try {
      await signOut()
    } catch (error) {
      this.#isEndedHere = false
      throw error
    }
    this.leave()
  }
}

/** The context that the page was served with. */
export interface PageContext extends DashboardContext {
  /** Allows style elements of terminals and the editor (CSP, nonce-source). */
  readonly nonce: string
}

/** Reads the page's context from the element that it is drawn in. */
export const readContext = ({ dataset }: HTMLElement): PageContext => ({
  ...(JSON.parse(dataset.context ?? '{}') as DashboardContext),
  nonce: dataset.nonce ?? '',
})
