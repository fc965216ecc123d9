import { Elysia, type Static, t } from 'elysia'
import { operation } from '../../contract/operation.ts'
import { integer } from '../../contract/schema.ts'
import { badRequest } from '../../errors.ts'
import { type WaitCheck, waitUntil } from '../../http/wait-ends.ts'
import { Build } from '../../resources/builds/model.ts'
import type { EmittedName } from '../../resources/events/names.ts'
import { Execution } from '../../resources/exec/model.ts'
import { Project } from '../../resources/projects/model.ts'
import { Task } from '../../resources/tasks/model.ts'
import { Delivery } from '../api/deliveries.ts'
import { EmittedEvent, EmittedEventName } from '../api/events.ts'
import type { ControlParts } from '../api/parts.ts'
import { InboxEntry, InboxName } from '../inbox/model.ts'
import { INBOX_LIMITS } from '../inbox/store.ts'
import { readUntil, STATES_PATTERN, STATES_WORDS } from './wait.ts'

/** Limits of the wait in milliseconds of real time. */
const TIMEOUT_MS = { default: 30_000, most: 600_000 }

const WaitQuery = t.Object(
  {
    task: t.Optional(t.String({ description: 'The id of a task.' })),
    build: t.Optional(t.String({ description: 'The id of a build.' })),
    project: t.Optional(t.String({ description: 'The id of a project.' })),
    execution: t.Optional(t.String({ description: 'The id of an execution.' })),
    delivery: t.Optional(t.String({ description: 'The id of a delivery.' })),
    deliveries: t.Optional(
      t.String({ description: 'The id of an event: until all its deliveries have been attempted.' }),
    ),
    event: t.Optional(EmittedEventName),
    inbox: t.Optional(InboxName),
    until: t.Optional(
      t.String({
        pattern: STATES_PATTERN,
        title: STATES_WORDS,
        description: 'States with commas between; where nothing is said, those in which it goes no further.',
      }),
    ),
    attempts: t.Optional(
      integer({ minimum: 1, description: 'Of a delivery: so many attempts do as well as a state.' }),
    ),
    after: t.Optional(
      t.String({
        description:
          'The id of the event, or of the entry of an inbox, behind which the next is waited for; `start` for all there are.',
      }),
    ),
    account_id: t.Optional(t.String({ description: 'Of events: those of one account.' })),
    count: t.Optional(
      integer({ minimum: 1, maximum: INBOX_LIMITS.entries, description: 'So many entries of an inbox.' }),
    ),
    timeout_ms: t.Optional(
      integer({
        minimum: 0,
        maximum: TIMEOUT_MS.most,
        description: `In physical milliseconds; ${TIMEOUT_MS.default} where nothing is said.`,
      }),
    ),
  },
  { additionalProperties: false },
)
type WaitQuery = Static<typeof WaitQuery>

const WaitOutcome = t.Object(
  {
    matched: t.Boolean({ description: 'False where the time was over first.' }),
    waited_ms: integer(),
    task: t.Optional(Task),
    build: t.Optional(Build),
    project: t.Optional(Project),
    execution: t.Optional(Execution),
    delivery: t.Optional(Delivery),
    deliveries: t.Optional(t.Array(Delivery)),
    event: t.Optional(t.Nullable(EmittedEvent)),
    entries: t.Optional(t.Array(InboxEntry)),
  },
  { $id: 'Outcome' },
)
type WaitOutcome = Static<typeof WaitOutcome>

/** Subjects, and the parameters that each allows. */
const OPTIONS = {
  task: ['until'],
  build: ['until'],
  project: ['until'],
  execution: ['until'],
  delivery: ['until', 'attempts'],
  deliveries: [],
  event: ['after', 'account_id'],
  inbox: ['after', 'count'],
} as const satisfies Partial<Record<keyof WaitQuery, readonly (keyof WaitQuery)[]>>

const SUBJECTS = Object.keys(OPTIONS) as readonly (keyof typeof OPTIONS)[]
const ALL_OPTIONS = new Set<keyof WaitQuery>(Object.values(OPTIONS).flat())

/** Serves `/_berth/wait`: responds as soon as something reaches a state, so tests need no sleep. */
export const waitRoutes = (parts: ControlParts) =>
  new Elysia({ prefix: '/_berth/wait' }).use(parts.access).get(
    '',
    async ({ query, request }): Promise<WaitOutcome> => {
      const { services, stopping } = parts
      const { outbox, changes } = services
      const began = performance.now()
      const check = await checkFor(query, parts)
      const { matched, shown } = await waitUntil({
        check,
        sources: [changes, outbox],
        timeoutMs: query.timeout_ms ?? TIMEOUT_MS.default,
        stopping,
        disconnected: request.signal,
      })
      // Without time it only asks.
      if (!matched && query.timeout_ms !== 0) services.recorder?.expiredWait(query)
      return { matched, waited_ms: Math.round(performance.now() - began), ...shown }
    },
    operation(
      'control.instance.wait',
      {
        access: 'admin',
        summary: 'Wait for a task, build, project, execution, delivery, event or inbox',
        description:
          'Responds as soon as one of the states is reached, or the timeout is over, with the current state of what was waited for.',
        success: { 200: WaitOutcome },
        errors: [404, 503],
      },
      { query: WaitQuery },
    ),
  )

async function checkFor(query: WaitQuery, { services, inbox }: ControlParts): Promise<() => WaitCheck> {
  const subject = subjectOf(query)
  const { [subject]: id = '', until, attempts, after } = query
  const { queries } = services
  const subjects = await import('./subjects.ts')
  switch (subject) {
    case 'task': {
      const wanted = readUntil('task', until)
      return subjects.taskCheck(queries, await services.tasks(), id, wanted)
    }
    case 'build':
      return subjects.buildCheck(queries, id, readUntil('build', until))
    case 'project': {
      const wanted = readUntil('project', until)
      return subjects.projectCheck(queries, await services.projects(), id, wanted)
    }
    case 'execution': {
      const wanted = readUntil('execution', until)
      return subjects.executionCheck(await services.executions(), id, wanted)
    }
    case 'delivery':
      return subjects.deliveryCheck(queries, id, readUntil('delivery', until), attempts)
    case 'deliveries':
      return subjects.deliveriesCheck(queries, id)
    case 'event':
      return subjects.eventCheck(queries, { event: id as EmittedName, after, accountId: query.account_id })
    case 'inbox':
      return subjects.inboxCheck(inbox, { inbox: id, after, count: query.count ?? 1 })
  }
}

/**
 * Returns the subject of a wait.
 *
 * @throws BerthError 400 if the query has none, several, or parameters that do not belong to it
 */
function subjectOf(query: WaitQuery): keyof typeof OPTIONS {
  const [subject, other] = SUBJECTS.filter((name) => query[name] !== undefined)
  if (subject === undefined)
    throw badRequest(`The query must say what is waited for: one of ${SUBJECTS.join(', ')}.`)
  if (other !== undefined)
    throw badRequest(`"${subject}" and "${other}" in the query exclude each other: one thing is waited for.`)
  const allowed: readonly (keyof WaitQuery)[] = OPTIONS[subject]
  const foreign = [...ALL_OPTIONS].find((name) => query[name] !== undefined && !allowed.includes(name))
  if (foreign === undefined) return subject
  const may = allowed.length === 0 ? 'nothing' : allowed.map((name) => `"${name}"`).join(' and ')
  throw badRequest(
    `"${foreign}" in the query does not go with "${subject}", which takes ${may} beside "timeout_ms".`,
  )
}
