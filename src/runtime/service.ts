/**
 * What begins and ends with an instance: the interface of services, and its rules.
 *
 * The other files of this room are basics that know nothing of berth and import no other room, such as `duration.ts`;
 * `validation/` checks values by a schema and words what is wrong. Look for one before you add a helper. The clock
 * (`clock.ts`), randomness (`random.ts`, `ids.ts`), the environment (`process-environment.ts`) and the log
 * (`logger.ts`) are read nowhere else, so that a test can decide them.
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
