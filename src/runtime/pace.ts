/** Milliseconds for which a slice of synchronous work may hold the event loop. */
const SLICE_MS = 4

/**
 * Cuts long synchronous work into slices, so that it holds other requests up for no longer than one. File system calls
 * on metadata take 2–5 µs each and about 100 µs through the thread pool: a walk of 100,000 files takes 0.7 s in slices
 * and 4–12 s in asynchronous calls.
 */
export class Pace {
  #sliceEnd = performance.now() + SLICE_MS

  /**
   * Whether the slice is used up; then `await rest()`. Separate from `rest`, so the common case costs no turn of the
   * event loop.
   */
  get due(): boolean {
    return performance.now() >= this.#sliceEnd
  }

  /** Lets everything else run first. */
  async rest(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve))
    this.#sliceEnd = performance.now() + SLICE_MS
  }
}
