import { and, asc, eq, gt, lt } from 'drizzle-orm'
import { badRequest, notFound } from '../../errors.ts'
import { accountCaller } from '../../http/caller.ts'
import { builds, toBuild } from '../../resources/builds/table.ts'
import type { EventName } from '../../resources/events/names.ts'
import { events } from '../../resources/events/table.ts'
import type { ProjectsService } from '../../resources/projects/service.ts'
import { projects } from '../../resources/projects/table.ts'
import type { TasksService } from '../../resources/tasks/service.ts'
import { tasks, toTask } from '../../resources/tasks/table.ts'
import { readDeliveries } from '../../resources/webhooks/history.ts'
import { fanOut, webhooks } from '../../resources/webhooks/table.ts'
import type { Queries } from '../../storage/database.ts'
import { checkAccount } from '../api/account.ts'
import { shownEvent } from '../api/events.ts'
import { toEntry } from '../inbox/model.ts'
import { type InboxStore, KEPT } from '../inbox/store.ts'
import type { Look } from './wait.ts'

/** Stands for the position before the first, as in lists. */
const START = 'start'

/** Deliveries of one event that are shown. */
const MOST_DELIVERIES = 1_000

/** Looks at a task. */
export function taskLook(queries: Queries, service: TasksService, id: string, until: ReadonlySet<string>) {
  const find = queries.select().from(tasks).where(eq(tasks.id, id)).prepare()
  return (): Look => {
    const row = find.get()
    if (row === undefined) throw notFound(`The task "${id}"`)
    const matched = until.has(row.status) || (until.has('held') && service.isHeld(id))
    return { matched, show: () => ({ task: toTask(row) }) }
  }
}

/** Looks at a build. */
export function buildLook(queries: Queries, id: string, until: ReadonlySet<string>) {
  const find = queries.select().from(builds).where(eq(builds.id, id)).prepare()
  return (): Look => {
    const row = find.get()
    if (row === undefined) throw notFound(`The build "${id}"`)
    return { matched: until.has(row.status), show: () => ({ build: toBuild(row) }) }
  }
}

/** Looks at a project: at its bring-up, and at its app. */
export function projectLook(
  queries: Queries,
  service: ProjectsService,
  id: string,
  until: ReadonlySet<string>,
) {
  const find = queries.select().from(projects).where(eq(projects.id, id)).prepare()
  return (): Look => {
    const row = find.get()
    if (row === undefined) throw notFound(`The project "${id}"`)
    const { initPhase, runtimeStatus, accountId } = row
    const matched = until.has(runtimeStatus) || (initPhase !== null && until.has(initPhase))
    return { matched, show: () => ({ project: service.get(accountCaller(accountId), id) }) }
  }
}

/**
 * Looks at a delivery.
 *
 * @param attempts a number of attempts that will do as well as a state
 */
export function deliveryLook(
  queries: Queries,
  id: string,
  until: ReadonlySet<string>,
  attempts = Number.POSITIVE_INFINITY,
) {
  return (): Look => {
    const [delivery] = readDeliveries(queries, { id, limit: 1 })
    if (delivery === undefined) throw notFound(`The delivery "${id}"`)
    const matched = until.has(delivery.status) || delivery.attempts.length >= attempts
    return { matched, show: () => ({ delivery }) }
  }
}

/**
 * Looks at all deliveries of an event: whether each has been attempted.
 *
 * @throws BerthError 404
 */
export function deliveriesLook(queries: Queries, eventId: string) {
  const event = queries.select().from(events).where(eq(events.id, eventId)).get()
  if (event === undefined) throw notFound(`The event "${eventId}"`)
  const isTaken = (): boolean =>
    queries
      .select({ events: webhooks.events })
      .from(webhooks)
      .where(and(eq(webhooks.accountId, event.accountId), lt(webhooks.fromSeq, event.seq)))
      .all()
      .some((webhook) => webhook.events.includes(event.event))
  const isFannedOut = (): boolean => (queries.select().from(fanOut).get()?.seq ?? 0) >= event.seq
  return (): Look => {
    const deliveries = readDeliveries(queries, { eventId, limit: MOST_DELIVERIES })
    const attempted = deliveries.every(({ status, attempts }) => status !== 'pending' || attempts.length > 0)
    return { matched: !isTaken() || (isFannedOut() && attempted), show: () => ({ deliveries }) }
  }
}

/** What is looked for among the events. */
export interface EventWish {
  event: EventName
  /** The id of the event behind which it is looked for; without one, all count. */
  after?: string | undefined
  accountId?: string | undefined
}

/** Looks for the first event of a name. @throws BerthError 400 where `after` or the account is none */
export function eventLook(queries: Queries, { event, after, accountId }: EventWish) {
  checkAccount(queries, accountId, '"account_id" in the query')
  const known =
    after === undefined || after === START
      ? { seq: 0 }
      : queries.select({ seq: events.seq }).from(events).where(eq(events.id, after)).get()
  if (known === undefined)
    throw badRequest(
      `"after" in the query: expected the id of an event, or start, got ${JSON.stringify(after)}.`,
    )
  const wanted = and(
    eq(events.event, event),
    gt(events.seq, known.seq),
    accountId === undefined ? undefined : eq(events.accountId, accountId),
  )
  const find = queries.select().from(events).where(wanted).orderBy(asc(events.seq)).limit(1).prepare()
  return (): Look => {
    const row = find.get()
    return { matched: row !== undefined, show: () => ({ event: row ? shownEvent(row) : null }) }
  }
}

/** What is looked for in an inbox. */
export interface InboxWish {
  inbox: string
  /** The id of the entry behind which it is looked for; without one, all count. */
  after?: string | undefined
  count: number
}

/** Looks for entries of an inbox. @throws BerthError 400 where `after` is none */
export function inboxLook(store: InboxStore, { inbox, after, count }: InboxWish) {
  const from = after === undefined || after === START ? 0 : store.position(after)
  if (from === undefined)
    throw badRequest(
      `"after" in the query: expected the id of an entry, or start, got ${JSON.stringify(after)}.`,
    )
  return (): Look => ({
    matched: store.count(inbox, from) >= count,
    show: () => ({ entries: store.list(inbox, { after: from, limit: KEPT.entries }).map(toEntry) }),
  })
}
