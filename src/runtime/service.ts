/**
 * The room has basics that know nothing of berth: each file is one thing, used for itself, and imports no other room. The clock
 * (`clock.ts`), randomness (`random.ts`, `ids.ts`), the environment (`process-environment.ts`) and the log (`logger.ts`) are read
 * nowhere else, so that a test can decide them.
 */

/** What begins and ends with an instance. */
export interface Lifecycle {
  /** Repairs what an earlier process left behind. No request comes in before this resolves. */
  recover?(): void | Promise<void>
  /** Starts it. Requests may come in meanwhile. */
  start?(): void | Promise<void>
  /** Ends it, whether or not it has started; a start under way gives up. Further calls change nothing. */
  stop?(): void | Promise<void>
}

/** A part of an instance that begins and ends with it. */
export interface Service extends Lifecycle {
  /** What it is, as messages name it: "webhook deliveries". */
  readonly name: string
}
