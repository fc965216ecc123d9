/**
 * Typed calls of the API for the command line and the dashboard. Their types come from the routes, so a call that no
 * route has does not compile, and a new operation of src/contract/operations.ts needs nothing here, unless it streams
 * (`Streams`) or its response is a union (`Unions`). It sends nothing: `requestOf` makes a request, which
 * src/cli/client.ts and src/dashboard/api/client.ts send. Clients for users of berth are not made from it.
 */

import { API_OPERATIONS, CONTROL_OPERATIONS } from '../contract/operations.ts'
import type { GROUPS } from '../instance/route-groups.ts'
import type { AccountChangeMessage } from '../resources/changes/model.ts'
import type { LogLines } from '../resources/logs/model.ts'
import type { PositionedDelta } from '../resources/tasks/transcript.ts'
import type { TranscriptEvent } from '../resources/tasks/transcript-event.ts'
import type { UsageMessage } from '../resources/usage/model.ts'
import type { CONTROL_GROUPS, ControlChangeMessage } from '../testing/testing.ts'

/** All that a client can call, as `METHOD /path/{parameter}` by id. */
const CALLS = {
  ...API_OPERATIONS,
  ...CONTROL_OPERATIONS,
  // The exchange of a code for a key, which only `berth login` asks for. No document lists it.
  'signIn.exchange': 'POST /cli/token',
} as const

/** The id of a call: that of an operation of the API or of the control API, or `signIn.exchange`. */
export type CallId = keyof typeof CALLS

/** A segment of a path as Elysia's tree of routes has it: `{serverId}` is `:serverId`. */
type KeyOf<Segment> = Segment extends `{${infer Name}}` ? `:${Name}` : Segment

/** The node of a tree of routes that a path leads to. */
type NodeAt<Tree, Path> = Path extends `/${infer Segment}/${infer Rest}`
  ? KeyOf<Segment> extends keyof Tree
    ? NodeAt<Tree[KeyOf<Segment>], `/${Rest}`>
    : never
  : Path extends `/${infer Segment}`
    ? KeyOf<Segment> extends keyof Tree
      ? Tree[KeyOf<Segment>]
      : never
    : never

/** The route at a method and path of the app; `never` where it has none, so that its id does not compile. */
type RouteAt<Call> = Call extends `${infer Method} ${infer Path}`
  ? Lowercase<Method> extends keyof NodeAt<ServedRoutes['~Routes'], Path>
    ? NodeAt<ServedRoutes['~Routes'], Path>[Lowercase<Method>]
    : never
  : never

/** What Elysia infers of the route of a call. */
type RouteOf<Id extends CallId> = RouteAt<(typeof CALLS)[Id]>

/** The statuses of successes. */
type Success = 200 | 201 | 202

/** Responses whose schema lists the fields of all kinds, typed by the union that says which go together. */
interface Unions {
  'tasks.events': { events: StoredTranscriptEvent[] }
}

/** The JSON of a call's successful response. */
export type ResponseOf<Id extends CallId> = Id extends keyof Unions ? Unions[Id] : SuccessOf<Id>

type SuccessOf<Id extends CallId> =
  RouteOf<Id> extends { response: infer Responses }
    ? Exclude<Responses[Success & keyof Responses], Response>
    : never

/** The same shape, whose optional fields may also be given as undefined. They are not sent. */
type Lenient<Shape> = Shape extends object
  ? {
      [Key in keyof Shape]: Record<never, never> extends Pick<Shape, Key>
        ? Lenient<Shape[Key]> | undefined
        : Lenient<Shape[Key]>
    }
  : Shape

/** A part of a request: absent where the shape has no fields, optional where all of them are. */
type Part<Name extends string, Shape> = [keyof NonNullable<Shape>] extends [never]
  ? { [Key in Name]?: undefined }
  : Record<never, never> extends NonNullable<Shape>
    ? { [Key in Name]?: Lenient<NonNullable<Shape>> }
    : null extends Shape
      ? { [Key in Name]?: Lenient<NonNullable<Shape>> }
      : { [Key in Name]: Lenient<Shape> }

/** A body whose shape the route leaves to its reader. Elysia infers the same where there is none. */
type BodyPart<Id extends CallId, Body> = [keyof NonNullable<Body>] extends [never]
  ? (typeof CALLS)[Id] extends `${'GET' | 'DELETE'} ${string}`
    ? { body?: undefined }
    : { body?: object }
  : Part<'body', Body>

/** What every call takes beside the shapes of its route. */
interface Sending {
  /** Sent as multipart/form-data in place of a body. */
  form?: FormData
  /** Sent unchanged in place of a body, for operations that take bytes. */
  bytes?: ReadableStream<Uint8Array> | Uint8Array | undefined
  /** The id of the last event that was received of a stream, which goes on after it. */
  lastEventId?: string | undefined
  /** Ends the request, and with it what it started. */
  signal?: AbortSignal | undefined
}

/** What a call takes: the parameters of its path, its query and its body, each as its route declares it. */
export type PartsOf<Id extends CallId> =
  RouteOf<Id> extends { params: infer Params; query: infer Query; body: infer Body }
    ? Part<'params', Params> & Part<'query', Query> & BodyPart<Id, Body> & Sending
    : never

/** The parts of a call as arguments: none are needed where none are required. */
export type ArgumentsOf<Id extends CallId> =
  Record<never, never> extends PartsOf<Id> ? [parts?: PartsOf<Id>] : [parts: PartsOf<Id>]

/** The streams of log lines of projects and builds. */
interface LogStream {
  line: LogLines[number]
  /** The number of lines that this reader was too slow for. */
  dropped: { lines: number }
}

/** The server-sent events of the calls that stream: the data of each, by the event's name. */
interface Streams {
  'usage.servers': Record<string, UsageMessage>
  'usage.get': Record<string, UsageMessage>
  'exec.run': ExecEvents
  'executions.output': ExecutionEvents
  'tasks.events': Record<string, StoredTranscriptEvent | PositionedDelta>
  'builds.logs': LogStream
  'projects.logs': LogStream
  'deployments.logs': LogStream
  'changes.stream': Record<string, AccountChangeMessage>
  'control.changes.stream': Record<string, ControlChangeMessage>
  'control.events.list': Record<string, ResponseOf<'control.events.list'>['events'][number]>
  'control.requests.list': Record<string, ResponseOf<'control.requests.list'>['requests'][number]>
  'control.inbox.read': Record<string, ResponseOf<'control.inbox.read'>['entries'][number]>
}

/** The events of a command's output. */
interface ExecEvents {
  stdout: OutputChunk
  stderr: OutputChunk
  exit: Omit<ResponseOf<'exec.stream'>, 'stdout' | 'stderr'>
  error: { readonly error: string; readonly message: string }
}

/** The events of an execution's output. */
interface ExecutionEvents extends Omit<ExecEvents, 'exit'> {
  /** In the place of output that is not kept; without fields before everything that is. */
  gap: { readonly stream?: 'stdout' | 'stderr'; readonly dropped?: number }
  exit: Pick<ResponseOf<'executions.get'>['execution'], 'status' | 'exitCode' | 'timedOut'>
}

/** A part of a command's output; base64 where the bytes are not UTF-8. */
export type OutputChunk = { readonly data: string } | { readonly data: string; readonly encoding: 'base64' }

/** An event of a task's transcript, with its place in it. */
export type StoredTranscriptEvent = TranscriptEvent & { readonly seq: number; readonly at: string }

/** The id of a call that can stream. */
export type StreamId = keyof Streams

/** A server-sent event of a call, its data parsed. */
export type StreamEventOf<Id extends StreamId> = {
  [Name in keyof Streams[Id]]: { event: Name; data: Streams[Id][Name] }
}[keyof Streams[Id]]

/** A request as it goes over HTTP. */
export interface HttpRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Sent as JSON. */
  readonly body: unknown
  readonly form: FormData | undefined
  readonly bytes: Sending['bytes']
  readonly lastEventId?: string | undefined
  readonly signal: AbortSignal | undefined
}

/** Returns the HTTP request of a call: parameters are encoded, and parts of the query that are undefined left out. */
export function requestOf<Id extends CallId>(id: Id, ...[parts]: ArgumentsOf<Id>): HttpRequest {
  const { params, query, body, form, bytes, lastEventId, signal } = (parts ?? {}) as UntypedParts
  const [method = '', pattern = ''] = CALLS[id].split(' ')
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params?.[name] ?? ''))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== undefined) search.append(name, String(value))
  const target = search.size === 0 ? path : `${path}?${search}`
  return { method, path: target, body, form, bytes, lastEventId, signal }
}

/** The parts of any call, as they are read at run time. */
interface UntypedParts extends Sending {
  params?: Readonly<Record<string, string>> | undefined
  query?: Readonly<Record<string, string | number | undefined>> | undefined
  body?: unknown
}

/** Reports whether a call goes to the control API, which takes the admin token. */
export const isControlCall = (id: CallId): boolean => Object.hasOwn(CONTROL_OPERATIONS, id)

/** A table of groups of routes, each made by a function. */
type GroupTable = Readonly<Record<string, (parts: never) => Promise<{ '~Routes': unknown }>>>

/** The intersection of the members of a union. */
type IntersectionOf<Union> = (Union extends unknown ? (one: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never

/** The routes of all groups of a table, as Elysia infers them: a tree by the segments of the path, then the method. */
type RoutesOf<Table extends GroupTable> = IntersectionOf<
  { [Name in keyof Table]: Awaited<ReturnType<Table[Name]>>['~Routes'] }[keyof Table]
>

/**
 * The type of everything that berth serves to clients: the API, the control API and the sign-in of terminals. The app
 * itself is put together at run time, group by group (instance/api.ts); this joins the types of the same groups, and
 * loads nothing.
 */
interface ServedRoutes {
  '~Routes': RoutesOf<Omit<typeof GROUPS, 'documents' | 'mcp'>> &
    RoutesOf<Omit<typeof CONTROL_GROUPS, 'documents'>>
}
