import { serverLabel } from '../../components/copy.tsx'
import { goalTitle, reasonOf } from '../../components/text.ts'
import { FOLLOWED, type FollowedType, type ObjectStep, stateOf } from '../../store/steps.ts'
import type {
  Build,
  Delivery,
  EmittedEvent,
  Execution,
  JournalRequest,
  Project,
  Server,
  Task,
  Terminal,
} from '../../store/store.ts'
import { isFailed, isRead, type RequestReader } from '../requests/facts.tsx'
import type { TranscriptEntry } from '../task/transcript.ts'

/** An object whose states are followed. */
export interface Thing {
  readonly type: FollowedType
  readonly id: string
  readonly name: string
  readonly state: string
  /** Why a task failed; null for everything else. */
  readonly reason: string | null
  /** The states that it came into while the page looked on, the oldest first. */
  readonly steps: readonly ObjectStep[]
}

/** What an entry of the timeline is about. */
export type EntrySubject =
  | { readonly kind: 'request'; readonly value: JournalRequest }
  | { readonly kind: 'event'; readonly value: EmittedEvent }
  | { readonly kind: 'delivery'; readonly value: Delivery }
  | { readonly kind: FollowedType; readonly value: Thing }
  | { readonly kind: 'step'; readonly value: TranscriptEntry }

/** An entry of the timeline with its effects. */
export interface TreeEntry {
  readonly key: string
  /** When it began, in milliseconds since 1970. */
  readonly at: number
  readonly subject: EntrySubject
  readonly isError: boolean
  readonly serverId: string | null
  readonly accountId: string | null
  /** When something last happened with it or with one of its effects. */
  last: number
  /** What it caused, the oldest first. */
  readonly children: TreeEntry[]
}

/** What the timeline is made of. Lists of traffic have the newest first. */
interface TreeInput {
  readonly requests: readonly JournalRequest[]
  readonly events: readonly EmittedEvent[]
  readonly deliveries: readonly Delivery[]
  readonly servers: readonly Server[]
  readonly projects: readonly Project[]
  readonly tasks: readonly Task[]
  readonly builds: readonly Build[]
  readonly steps: readonly ObjectStep[]
  /** What the agent did, by the ids of the tasks of which that is shown. */
  readonly transcripts: ReadonlyMap<string, readonly TranscriptEntry[]>
  readonly facts: RequestReader
  /** The account of the session, whose objects these are. */
  readonly accountId: string
}

/** States that are failures. */
const BAD = /^(?:failed|crashed|exited with [1-9])/

/** Puts each entry below its cause, as far as ids show it; the latest first. */
export function growTree(input: TreeInput): TreeEntry[] {
  const { requests, events, deliveries, projects, facts } = input
  const roots: TreeEntry[] = []
  /** The request that made an object, by the object's id. */
  const makers = new Map<string, TreeEntry>()
  /** The newest request that published from a server, by the server's id, which is that of its deployment. */
  const publishers = new Map<string, TreeEntry>()
  const byRequest = new Map<string, TreeEntry>()
  for (const request of requests) {
    const entry = entryOf(
      'request',
      request.id,
      facts.of(request).at,
      { kind: 'request', value: request },
      {
        isError: isFailed(request),
        serverId: facts.serverId(request, projects),
        accountId: request.account_id,
      },
    )
    roots.push(entry)
    byRequest.set(request.id, entry)
    if (isRead(request)) continue
    for (const id of facts.of(request).made) makers.set(id, entry)
    const { serverId } = entry
    if (request.operation === 'deployments.create' && serverId !== null && !publishers.has(serverId))
      publishers.set(serverId, entry)
  }
  const things = new Map<string, TreeEntry>()
  for (const { id, entry } of thingsOf(input)) {
    // The id of a deployment is that of its server.
    const isDeployment = entry.subject.kind === 'deployment'
    if (entry.subject.kind === 'task')
      entry.children.push(...stepEntries(entry, input.transcripts.get(id) ?? []))
    if (!isDeployment) things.set(id, entry)
    const cause = isDeployment ? publishers.get(id) : makers.get(id)
    ;(cause?.children ?? roots).push(entry)
  }
  const byEvent = new Map<string, TreeEntry>()
  for (const event of events) {
    const { server_id: serverId } = event.data
    const entry = entryOf(
      'event',
      event.id,
      Date.parse(event.created_at),
      { kind: 'event', value: event },
      {
        isError: /failed$|cap_reached$/.test(event.event),
        serverId: typeof serverId === 'string' ? serverId : null,
        accountId: event.account_id,
      },
    )
    byEvent.set(event.id, entry)
    ;(causeOf(event, { makers, things, byRequest })?.children ?? roots).push(entry)
  }
  for (const delivery of deliveries) {
    const cause = byEvent.get(delivery.event_id)
    ;(cause?.children ?? roots).push(deliveryEntry(delivery, cause?.serverId ?? null))
  }
  for (const root of roots) orderChildren(root)
  return roots.sort((a, b) => b.last - a.last)
}

const entryOf = (
  kind: string,
  id: string,
  at: number,
  subject: EntrySubject,
  facts: Pick<TreeEntry, 'isError' | 'serverId' | 'accountId'>,
): TreeEntry => ({ key: `${kind} ${id}`, at, last: at, subject, ...facts, children: [] })

function deliveryEntry(delivery: Delivery, serverId: string | null): TreeEntry {
  const facts = { serverId, accountId: delivery.account_id }
  const { id, attempts, status, created_at: createdAt } = delivery
  const entry = entryOf(
    'delivery',
    id,
    Date.parse(attempts[0]?.at ?? createdAt),
    { kind: 'delivery', value: delivery },
    { ...facts, isError: status === 'failed' || attempts.at(-1)?.error != null },
  )
  // Its line counts its attempts: a missing receiver has many.
  entry.last = Date.parse(attempts.at(-1)?.at ?? createdAt)
  return entry
}

/** Returns the entries of an agent's steps of a task. */
const stepEntries = (task: TreeEntry, transcript: readonly TranscriptEntry[]): TreeEntry[] =>
  transcript.map((step) =>
    entryOf(
      'step',
      `${task.key} ${step.key}`,
      step.at ?? task.last,
      { kind: 'step', value: step },
      {
        isError: step.kind === 'tool' && step.result?.ok === false,
        serverId: task.serverId,
        accountId: task.accountId,
      },
    ),
  )

/** Finds the cause of an event: the task or project that it is about, else the request that berth names. */
function causeOf(
  { data, request_id: requestId }: EmittedEvent,
  {
    makers,
    things,
    byRequest,
  }: Readonly<Record<'makers' | 'things' | 'byRequest', ReadonlyMap<string, TreeEntry>>>,
): TreeEntry | undefined {
  const request = requestId === null ? undefined : byRequest.get(requestId)
  const { task_id: taskId, project_id: projectId } = data
  if (typeof taskId === 'string') return things.get(taskId) ?? makers.get(taskId) ?? request
  // For a project's creation the project itself, which is below it; for a later bring-up its cause.
  if (typeof projectId === 'string' && (request === undefined || request === makers.get(projectId)))
    return things.get(projectId) ?? request
  return request
}

/** Returns the entries of all objects. */
function thingsOf(input: TreeInput): { id: string; entry: TreeEntry }[] {
  const steps = new Map<string, ObjectStep[]>()
  for (const step of input.steps) {
    const key = `${step.type} ${step.id}`
    const known = steps.get(key)
    if (known) known.push(step)
    else steps.set(key, [step])
  }
  const found = new Map<string, { id: string; entry: TreeEntry }>()
  const add = (type: FollowedType, id: string, serverId: string | null, value: unknown): void => {
    const key = `${type} ${id}`
    const taken = steps.get(key) ?? []
    const last = taken.at(-1)
    const state = last?.state === 'deleted' ? 'deleted' : stateOf(type, value)
    const reason = type === 'task' ? reasonOf(value as Task) : null
    const thing = { type, id, name: nameOf(type, value), state, reason, steps: taken }
    const at = createdAtOf(value) ?? taken[0]?.at ?? 0
    const facts = { isError: BAD.test(state), serverId, accountId: input.accountId }
    const entry = entryOf(type, id, at, { kind: type, value: thing }, facts)
    entry.last = Math.max(at, last?.at ?? 0)
    found.set(key, { id, entry })
  }
  for (const server of input.servers) add('server', server.id, server.id, server)
  for (const project of input.projects) add('project', project.id, project.server_id, project)
  for (const task of input.tasks) add('task', task.id, task.serverId, task)
  for (const build of input.builds) add('build', build.id, build.serverId, build)
  // Those that no list has: executions, terminals, deployments, and deleted objects.
  for (const taken of steps.values()) {
    const last = taken.at(-1)
    if (last && last.value !== null && !found.has(`${last.type} ${last.id}`))
      add(last.type, last.id, last.serverId, last.value)
  }
  return [...found.values()]
}

function nameOf(type: FollowedType, value: unknown): string {
  switch (type) {
    case 'server':
      return serverLabel((value as Server).id, (value as Server).task)
    case 'project':
      return (value as Project).name
    case 'task':
    case 'build':
      return goalTitle((value as Task | Build).goal)
    case 'execution':
      return goalTitle((value as Execution).command)
    case 'terminal':
      return (value as Terminal).name
    case 'deployment':
      return (value as { url: string }).url
  }
}

function createdAtOf(value: unknown): number | undefined {
  const { createdAt, created_at, startedAt, started_at } = value as Record<string, string | undefined>
  const at = createdAt ?? created_at ?? startedAt ?? started_at
  return at === undefined ? undefined : Date.parse(at)
}

/** Sorts the effects of an entry, and finds out when something last happened. */
function orderChildren(entry: TreeEntry): void {
  for (const child of entry.children) {
    orderChildren(child)
    entry.last = Math.max(entry.last, child.last)
  }
  entry.children.sort((a, b) => a.at - b.at)
}

/** Reports whether an entry or anything below it fits. */
export const some = (entry: TreeEntry, fits: (entry: TreeEntry) => boolean): boolean =>
  fits(entry) || entry.children.some((child) => some(child, fits))

/** Reports whether a kind is that of an object whose states are followed. */
export const isThing = (subject: EntrySubject): subject is Extract<EntrySubject, { kind: FollowedType }> =>
  (FOLLOWED as readonly string[]).includes(subject.kind)
