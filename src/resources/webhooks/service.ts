import { and, desc, eq, sql } from 'drizzle-orm'
import { badRequest, notFound } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Ids } from '../../runtime/ids.ts'
import type { Random } from '../../runtime/random.ts'
import { within } from '../../runtime/wait.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Queries } from '../../storage/database.ts'
import type { Changes } from '../changes/types.ts'
import { EVENT_NAMES, type EventName } from '../events/names.ts'
import type { DestinationRules } from './destination.ts'
import { subscribePosition } from './fan-out.ts'
import type { CreatedWebhook, Webhook, WebhookCreate } from './model.ts'
import { toWebhook, webhooks } from './table.ts'

/** Milliseconds that a creation waits for a name to resolve. */
const RESOLVE_TIMEOUT_MS = 2_000

/** Dependencies of the webhooks. */
interface WebhooksDependencies {
  queries: Queries
  clock: Clock
  ids: Ids
  cipher: Cipher
  /** The source of signing secrets. */
  random: Random
  destinations: DestinationRules
  changes: Changes
  /** Called with the id of a deleted webhook. */
  onDeleted: (webhookId: string) => void
}

/** Manages subscriptions to events. */
export class WebhooksService {
  readonly #dependencies: WebhooksDependencies
  readonly #queries: Queries

  constructor(dependencies: WebhooksDependencies) {
    this.#dependencies = dependencies
    this.#queries = dependencies.queries
  }

  /** Returns the caller's webhooks, newest first. */
  list({ accountId }: Caller): Webhook[] {
    return this.#queries
      .select()
      .from(webhooks)
      .where(eq(webhooks.accountId, accountId))
      .orderBy(desc(sql`rowid`))
      .all()
      .map(toWebhook)
  }

  /** Returns a webhook. @throws BerthError 404 */
  get({ accountId }: Caller, id: string): Webhook {
    const row = this.#row(id)
    if (row?.accountId !== accountId) throw notFound(`The webhook "${id}"`)
    return toWebhook(row)
  }

  /**
   * Subscribes to events from now on. A name that does not resolve is accepted, because berth works offline; every
   * delivery checks the destination again.
   *
   * @param chosen a signing secret chosen by the operator
   * @throws BerthError 400 if the destination is not allowed
   */
  async create(
    { accountId }: Caller,
    { url, events = [] }: WebhookCreate,
    chosen?: string,
  ): Promise<CreatedWebhook> {
    await this.check(url)
    const [{ newSigningSecret }, { secretContext }] = await Promise.all([
      import('./signature.ts'),
      import('./delivery.ts'),
    ])
    const { ids, clock, cipher, random } = this.#dependencies
    const secret = chosen ?? newSigningSecret(random)
    return this.#queries.transaction((tx) => {
      const id = ids.next('wh', (taken) => this.#row(taken) !== undefined)
      const row = tx
        .insert(webhooks)
        .values({
          id,
          accountId,
          ...subscription(url, events),
          secret: cipher.seal(secret, secretContext(id)),
          fromSeq: subscribePosition(tx),
          createdAt: clock.now(),
        })
        .returning()
        .get()
      this.#dependencies.changes.notify('webhook', id, accountId)
      const { disabled_at: _, ...created } = toWebhook(row)
      return { ...created, secret }
    })
  }

  /**
   * Switches a subscription on that its receiver has switched off: events from now on are sent. One that is on stays as
   * it is.
   *
   * @throws BerthError 404
   */
  enable(caller: Caller, id: string): Webhook {
    const webhook = this.get(caller, id)
    return webhook.disabled_at === null ? webhook : this.#switchOn(id, caller.accountId)
  }

  #switchOn(id: string, accountId: string): Webhook {
    return this.#queries.transaction((tx) => {
      const row = tx
        .update(webhooks)
        .set({ disabledAt: null, fromSeq: subscribePosition(tx) })
        .where(eq(webhooks.id, id))
        .returning()
        .get()
      this.#dependencies.changes.notify('webhook', id, accountId)
      return toWebhook(row)
    })
  }

  /**
   * Deletes a subscription with its deliveries.
   *
   * @throws BerthError 404
   */
  delete({ accountId }: Caller, id: string): void {
    const mine = and(eq(webhooks.id, id), eq(webhooks.accountId, accountId))
    const [deleted] = this.#queries.delete(webhooks).where(mine).returning({ id: webhooks.id }).all()
    if (!deleted) throw notFound(`The webhook "${id}"`)
    this.#dependencies.onDeleted(id)
    this.#dependencies.changes.notify('webhook', id, accountId)
  }

  /**
   * Changes the destination and events of a subscription, and its secret if one is given. A new destination switches
   * it on.
   *
   * @throws BerthError 400, 404
   */
  async change(
    caller: Caller,
    id: string,
    { url, events = [], secret }: WebhookCreate & { secret?: string },
  ): Promise<void> {
    await this.check(url)
    const { secretContext } = await import('./delivery.ts')
    const { cipher, changes } = this.#dependencies
    const mine = and(eq(webhooks.id, id), eq(webhooks.accountId, caller.accountId))
    const sealed = secret === undefined ? {} : { secret: cipher.seal(secret, secretContext(id)) }
    const before = this.get(caller, id)
    const [changed] = this.#queries
      .update(webhooks)
      .set({ ...subscription(url, events), ...sealed })
      .where(mine)
      .returning()
      .all()
    if (!changed) throw notFound(`The webhook "${id}"`)
    if (changed.disabledAt !== null && changed.url !== before.url) this.#switchOn(id, caller.accountId)
    else changes.notify('webhook', id, caller.accountId)
  }

  /** Returns the signing secret for the operator; null if there is no such webhook. */
  async secret(id: string): Promise<string | null> {
    const { secretContext } = await import('./delivery.ts')
    const row = this.#row(id)
    return row ? this.#dependencies.cipher.open(row.secret, secretContext(id)) : null
  }

  #row(id: string) {
    return this.#queries.select().from(webhooks).where(eq(webhooks.id, id)).get()
  }

  /**
   * Checks a destination.
   *
   * @throws BerthError 400 if it is not allowed
   */
  async check(url: string): Promise<void> {
    const { checkDestination, DestinationError } = await import('./destination.ts')
    const { destinations } = this.#dependencies
    try {
      await checkDestination(url, {
        ...destinations,
        resolve: (name) => within(RESOLVE_TIMEOUT_MS, destinations.resolve(name), []),
      })
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error
      if (!error.isUnresolved) throw badRequest(error.message)
    }
  }
}

/** Returns the stored fields of a subscription. */
const subscription = (url: string, events: readonly EventName[]) => ({
  url: isPlainUri(url) ? url : new URL(url).href,
  events: events.length > 0 ? [...new Set(events)] : [...EVENT_NAMES],
})

/** Reports whether a URL uses only characters of RFC 3986. Others are shown as the parser writes them. */
const isPlainUri = (url: string): boolean => /^[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/.test(url)
