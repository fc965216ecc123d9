import { and, asc, desc, eq, inArray, sql } from 'drizzle-orm'
import { toIso } from '../../runtime/clock.ts'
import type { Queries } from '../../storage/database.ts'
import type { EventName } from '../events/names.ts'
import { events } from '../events/table.ts'
import type { DeliveryStatus } from './model.ts'
import { type AttemptRow, deliveries, deliveryAttempts, webhooks } from './table.ts'

/** Selects deliveries. */
interface DeliveryFilter {
  id?: string
  webhookId?: string
  event?: EventName
  eventId?: string
  accountId?: string
  status?: DeliveryStatus
  /** The most deliveries to return. */
  limit: number
}

/** A delivery with its attempts. */
interface DeliveryReport {
  id: string
  webhook_id: string
  account_id: string
  event_id: string
  event: string
  url: string
  status: DeliveryStatus
  created_at: string
  /** When it is attempted next; null if that is at once or never. */
  next_attempt_at: string | null
  attempts: AttemptReport[]
}

/** An attempt with its request and response. */
interface AttemptReport {
  number: number
  at: string
  status: number | null
  ms: number
  error: string | null
  request: { headers: Record<string, string>; body: string }
  response: { headers: Record<string, string>; body: string } | null
}

/** Reads deliveries with their attempts, newest first. */
export function readDeliveries(queries: Queries, filter: DeliveryFilter): DeliveryReport[] {
  const { id, webhookId, event, eventId, accountId, status, limit } = filter
  const rows = queries
    .select({ delivery: deliveries, eventId: events.id, event: events.event, webhook: webhooks })
    .from(deliveries)
    .innerJoin(events, eq(events.seq, deliveries.eventSeq))
    .innerJoin(webhooks, eq(webhooks.id, deliveries.webhookId))
    .where(
      and(
        id === undefined ? undefined : eq(deliveries.id, id),
        webhookId === undefined ? undefined : eq(deliveries.webhookId, webhookId),
        event === undefined ? undefined : eq(events.event, event),
        eventId === undefined ? undefined : eq(events.id, eventId),
        accountId === undefined ? undefined : eq(webhooks.accountId, accountId),
        status === undefined ? undefined : eq(deliveries.status, status),
      ),
    )
    .orderBy(desc(sql`${deliveries}.rowid`))
    .limit(limit)
    .all()
  const attempts = attemptsOf(
    queries,
    rows.map(({ delivery }) => delivery.id),
  )
  return rows.map(({ delivery, eventId, event, webhook }) => ({
    id: delivery.id,
    webhook_id: delivery.webhookId,
    account_id: webhook.accountId,
    event_id: eventId,
    event,
    url: webhook.url,
    status: delivery.status,
    created_at: toIso(delivery.createdAt),
    next_attempt_at: delivery.nextAttemptAt > 0 ? toIso(delivery.nextAttemptAt) : null,
    attempts: attempts.get(delivery.id) ?? [],
  }))
}

/** Ids in one statement, well below SQLite's limit of variables. */
const IDS_PER_STATEMENT = 1_000

function attemptsOf(queries: Queries, ids: string[]): Map<string, AttemptReport[]> {
  const byDelivery = new Map<string, AttemptReport[]>()
  for (let at = 0; at < ids.length; at += IDS_PER_STATEMENT) {
    const rows = queries
      .select()
      .from(deliveryAttempts)
      .where(inArray(deliveryAttempts.deliveryId, ids.slice(at, at + IDS_PER_STATEMENT)))
      .orderBy(asc(deliveryAttempts.deliveryId), asc(deliveryAttempts.number))
      .all()
    for (const row of rows) {
      const known = byDelivery.get(row.deliveryId)
      if (known) known.push(toReport(row))
      else byDelivery.set(row.deliveryId, [toReport(row)])
    }
  }
  return byDelivery
}

const toReport = ({
  number,
  at,
  status,
  ms,
  error,
  headers,
  body,
  response,
  responseHeaders,
}: AttemptRow): AttemptReport => ({
  number,
  at: toIso(at),
  status,
  ms,
  error,
  request: { headers, body },
  response: response === null ? null : { headers: responseHeaders ?? {}, body: response },
})

/** How the deliveries to a webhook went. */
interface WebhookSummary {
  webhook_id: string
  account_id: string
  url: string
  /** How many deliveries there are, by their status. */
  pending: number
  delivered: number
  failed: number
  disabled: number
  /** The share of the ended deliveries that were delivered, 0 to 1; null while none has ended. */
  success_rate: number | null
  attempts: number
  failed_attempts: number
  last_attempt_at: string | null
  /** Why the last attempt failed; null if it did not. */
  last_error: string | null
}

/** Summarizes the deliveries to each webhook, the newest webhook first. */
export function summarizeDeliveries(queries: Queries, accountId: string | undefined): WebhookSummary[] {
  const count = (status: DeliveryStatus) =>
    sql<number>`(SELECT COUNT(*) FROM deliveries WHERE webhook_id = webhooks.id AND status = ${status})`
  const ofAttempts = (what: string) =>
    sql`(SELECT ${sql.raw(what)} FROM delivery_attempts a JOIN deliveries d ON d.id = a.delivery_id WHERE d.webhook_id = webhooks.id`
  const rows = queries
    .select({
      webhook: webhooks,
      pending: count('pending'),
      delivered: count('delivered'),
      failed: count('failed'),
      disabled: count('disabled'),
      attempts: sql<number>`${ofAttempts('COUNT(*)')})`,
      failedAttempts: sql<number>`${ofAttempts('COUNT(*)')} AND a.error IS NOT NULL)`,
      lastAt: sql<
        number | null
      >`${ofAttempts('a.at')} ORDER BY a.at DESC, d.event_seq DESC, a.number DESC LIMIT 1)`,
      lastError: sql<
        string | null
      >`${ofAttempts('a.error')} ORDER BY a.at DESC, d.event_seq DESC, a.number DESC LIMIT 1)`,
    })
    .from(webhooks)
    .where(accountId === undefined ? undefined : eq(webhooks.accountId, accountId))
    .orderBy(desc(sql`${webhooks}.rowid`))
    .all()
  return rows.map(({ webhook, pending, delivered, failed, disabled, attempts, ...rest }) => ({
    webhook_id: webhook.id,
    account_id: webhook.accountId,
    url: webhook.url,
    pending,
    delivered,
    failed,
    disabled,
    success_rate: delivered + failed === 0 ? null : delivered / (delivered + failed),
    attempts,
    failed_attempts: rest.failedAttempts,
    last_attempt_at: rest.lastAt === null ? null : toIso(rest.lastAt),
    last_error: rest.lastError,
  }))
}
