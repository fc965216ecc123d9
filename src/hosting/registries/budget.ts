/** Gives back what was acquired. A second call has no effect. */
export type Release = () => void

/** What a client has, and who waits for it to give something back. */
interface Share {
  used: number
  readonly waiting: { amount: number; start: (release: Release) => void }[]
}

/**
 * Bounds an amount for each of several clients, such as bytes. Who exceeds it waits for what the same client gives back,
 * so no client holds up another.
 */
export class Budget {
  readonly #limit: number
  readonly #shares = new Map<string, Share>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Acquires an amount if it is there at once; else returns null. More than the limit is there if nothing is in use. */
  tryAcquire(client: string, amount: number): Release | null {
    const share = this.#shares.get(client) ?? { used: 0, waiting: [] }
    const isFree = share.used === 0 || share.used + amount <= this.#limit
    if (share.waiting.length > 0 || !isFree) return null
    this.#shares.set(client, share)
    return this.#take(client, share, amount)
  }

  /** Acquires an amount, in the order of the calls. */
  acquire(client: string, amount: number): Promise<Release> {
    const release = this.tryAcquire(client, amount)
    if (release !== null) return Promise.resolve(release)
    const { promise, resolve } = Promise.withResolvers<Release>()
    this.#shares.get(client)?.waiting.push({ amount, start: resolve })
    return promise
  }

  #take(client: string, share: Share, amount: number): Release {
    share.used += amount
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      share.used -= amount
      for (let next = share.waiting[0]; next !== undefined; next = share.waiting[0]) {
        if (share.used > 0 && share.used + next.amount > this.#limit) return
        share.waiting.shift()
        next.start(this.#take(client, share, next.amount))
      }
      if (share.used === 0) this.#shares.delete(client)
    }
  }
}
