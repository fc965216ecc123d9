import { and, asc, eq, gt, isNull, lt } from 'drizzle-orm'
import { badRequest, notFound } from '../../errors.ts'
import { accountCaller } from '../../http/caller.ts'
import type { WaitCheck } from '../../http/wait-ends.ts'
import { builds, toBuild } from '../../resources/builds/table.ts'
import { type EmittedName, isSubscribable } from '../../resources/events/names.ts'
import { events } from '../../resources/events/table.ts'
import type { ExecutionsService } from '../../resources/exec/executions.ts'
import type { ProjectsService } from '../../resources/projects/service.ts'
import { projects } from '../../resources/projects/table.ts'
import type { TasksService } from '../../resources/tasks/service.ts'
import { tasks, toTask } from '../../resources/tasks/table.ts'
import { readDeliveries } from '../../resources/webhooks/history.ts'
import { fanOut, webhooks } from '../../resources/webhooks/table.ts'
import type { Queries } from '../../storage/database.ts'
import { checkAccount } from '../api/account.ts'
import { shownEvent } from '../api/events.ts'
import { START } from '../api/list-query.ts'
import { toEntry } from '../inbox/model.ts'
import { INBOX_LIMITS, type InboxStore } from '../inbox/store.ts'

/** Most deliveries of an event in the result. @bound client */
const MAX_DELIVERIES = 1_000

/** Makes a check of a task's state. */
export function taskCheck(queries: Queries, service: TasksService, id: string, until: ReadonlySet<string>) {
  const find = queries.select().from(tasks).where(eq(tasks.id, id)).prepare()
  return (): WaitCheck => {
    const row = find.get()
    if (row === undefined) throw notFound(`The task "${id}"`)
    const matched = until.has(row.status) || (until.has('held') && service.isHeld(id))
    return { matched, show: () => ({ task: toTask(row) }) }
  }
}

/** Makes a check of a build's state. */
export function buildCheck(queries: Queries, id: string, until: ReadonlySet<string>) {
  const find = queries.select().from(builds).where(eq(builds.id, id)).prepare()
  return (): WaitCheck => {
    const row = find.get()
    if (row === undefined) throw notFound(`The build "${id}"`)
    return { matched: until.has(row.status), show: () => ({ build: toBuild(row) }) }
  }
}

/** Makes a check of a project's bring-up and app. */
export function projectCheck(
  queries: Queries,
  service: ProjectsService,
  id: string,
  until: ReadonlySet<string>,
) {
  const find = queries.select().from(projects).where(eq(projects.id, id)).prepare()
  return (): WaitCheck => {
    const row = find.get()
    if (row === undefined) throw notFound(`The project "${id}"`)
    const { initPhase, runtimeStatus, accountId } = row
    const matched = until.has(runtimeStatus) || (initPhase !== null && until.has(initPhase))
    return { matched, show: () => ({ project: service.get(accountCaller(accountId), id) }) }
  }
}

/** Makes a check of an execution's state. */
export function executionCheck(service: ExecutionsService, id: string, until: ReadonlySet<string>) {
  return (): WaitCheck => {
    const execution = service.find(id)
    if (execution === undefined) throw notFound(`The execution "${id}"`)
    return { matched: until.has(execution.status), show: () => ({ execution }) }
  }
}

/**
 * Makes a check of a delivery.
 *
 * @param attempts a number of attempts that suffices too
 */
export function deliveryCheck(
  queries: Queries,
  id: string,
  until: ReadonlySet<string>,
  attempts = Number.POSITIVE_INFINITY,
) {
  return (): WaitCheck => {
    const [delivery] = readDeliveries(queries, { id, limit: 1 })
    if (delivery === undefined) throw notFound(`The delivery "${id}"`)
    const matched = until.has(delivery.status) || delivery.attempts.length >= attempts
    return { matched, show: () => ({ delivery }) }
  }
}

/**
 * Makes a check that each delivery of an event was attempted.
 *
 * @throws BerthError 404
 */
export function deliveriesCheck(queries: Queries, eventId: string) {
  const event = queries.select().from(events).where(eq(events.id, eventId)).get()
  if (event === undefined) throw notFound(`The event "${eventId}"`)
  const isTaken = (): boolean =>
    queries
      .select({ events: webhooks.events })
      .from(webhooks)
      .where(
        and(
          eq(webhooks.accountId, event.accountId),
          lt(webhooks.fromSeq, event.seq),
          isNull(webhooks.disabledAt),
        ),
      )
      .all()
      .some((webhook) => isSubscribable(event.event) && webhook.events.includes(event.event))
  const isFannedOut = (): boolean => (queries.select().from(fanOut).get()?.seq ?? 0) >= event.seq
  return (): WaitCheck => {
    const deliveries = readDeliveries(queries, { eventId, limit: MAX_DELIVERIES })
    const attempted = deliveries.every(({ status, attempts }) => status !== 'pending' || attempts.length > 0)
    return { matched: !isTaken() || (isFannedOut() && attempted), show: () => ({ deliveries }) }
  }
}

/** Selects an event. */
interface EventParams {
  event: EmittedName
  /** Only events after the one with this id; all without it. */
  after?: string | undefined
  accountId?: string | undefined
}

/**
 * Makes a check for the first event of a name.
 *
 * @throws BerthError 400 if `after` or the account does not exist
 */
export function eventCheck(queries: Queries, { event, after, accountId }: EventParams) {
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
  return (): WaitCheck => {
    const row = find.get()
    return { matched: row !== undefined, show: () => ({ event: row ? shownEvent(row) : null }) }
  }
}

/** Selects entries of an inbox. */
interface InboxParams {
  inbox: string
  /** Only entries after the one with this id; all without it. */
  after?: string | undefined
  count: number
}

/**
 * Makes a check for entries of an inbox.
 *
 * @throws BerthError 400 if `after` does not exist
 */
export function inboxCheck(store: InboxStore, { inbox, after, count }: InboxParams) {
  const from = after === undefined || after === START ? 0 : store.position(after)
  if (from === undefined)
    throw badRequest(
      `"after" in the query: expected the id of an entry, or start, got ${JSON.stringify(after)}.`,
    )
  return (): WaitCheck => ({
    matched: store.count(inbox, from) >= count,
    show: () => ({
      entries: store.entries(inbox, { after: from, limit: INBOX_LIMITS.entries }).map(toEntry),
    }),
  })
}
