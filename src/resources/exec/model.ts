import { type Static, t } from 'elysia'
import { ErrorBody, streamEvent } from '../../contract/model.ts'
import {
  base64,
  flagSchema,
  integer,
  NO_NUL,
  oneOf,
  used,
  variables,
  withFields,
  worded,
} from '../../contract/schema.ts'

/** Entries of a page of output: by default, and at most. */
export const DEFAULT_ENTRIES = 500
/** @bound client */
const MAX_ENTRIES = 2_000

/** A shell command to run on a server. */
export const ExecRequest = t.Object(
  {
    command: t.String({
      pattern: NO_NUL,
      description: 'Given to `sh -c` in the workspace.',
    }),
    cwd: t.Optional(
      t.String({ maxLength: 4096, pattern: NO_NUL, description: 'Directory inside the workspace.' }),
    ),
    env: t.Optional(
      variables(t.String({ maxLength: 65_536, pattern: NO_NUL }), {
        description: 'Variables on top of the base environment; names match [A-Za-z_][A-Za-z0-9_]*.',
      }),
    ),
    stdin: t.Optional(
      t.String({ description: 'Text for standard input; without it standard input is empty.' }),
    ),
    timeoutMs: t.Optional(
      integer({
        minimum: 1,
        maximum: 86_400_000,
        description:
          'Milliseconds after which the command is ended; 10 minutes by default, with `detach` never.',
      }),
    ),
    detach: t.Optional(
      t.Boolean({
        description: 'Respond with 202 and an `execution` as soon as the command runs. It runs on by itself.',
      }),
    ),
    openStdin: t.Optional(
      t.Boolean({
        description:
          'With `detach`: standard input begins with `stdin` and stays open for `executions.input`. Without it, it ends with `stdin`.',
      }),
    ),
  },
  {
    $id: 'ExecRequest',
    additionalProperties: true,
    examples: [{ command: 'uname -a' }],
    // For documents. Validation has no such condition, so the route checks it.
    if: withFields(['openStdin']),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties: { detach: { const: true } }, required: ['detach'] },
  },
)
export type ExecRequest = Static<typeof ExecRequest>

/** The query of a command whose standard input is the request's body. */
export const ExecStreamQuery = t.Object(
  {
    command: t.String({
      pattern: NO_NUL,
      description: 'Given to `sh -c` in the workspace.',
    }),
    cwd: t.Optional(
      t.String({ maxLength: 4096, pattern: NO_NUL, description: 'Directory inside the workspace.' }),
    ),
    timeoutMs: t.Optional(
      integer({
        minimum: 1,
        maximum: 86_400_000,
        description: 'Milliseconds after which the command is ended; without it, when the connection closes.',
      }),
    ),
  },
  { additionalProperties: true },
)

/** A connection that berth refused, or that failed by its proxy. */
export const RefusedConnection = t.Object(
  {
    destination: t.String(),
    reason: t.String(),
    remedy: t.String({ description: 'What would allow it, or what else helps.' }),
    failed: t.Optional(
      t.Literal(true, {
        description: 'Berth let it pass, and it failed. Only there if so, and on an engine.',
      }),
    ),
  },
  { $id: 'RefusedConnection', additionalProperties: true },
)

/** Which of its two streams a command has printed something to. */
export const OutputStreamName = oneOf(['stdout', 'stderr'], { $id: 'OutputStreamName' })

/** The encoding of data that is not text. */
export const Base64Encoding = oneOf(['base64'], { $id: 'Base64Encoding' })

/** The end of a command and its output. The failure of a command is not a failure of the request. */
export const ExecResult = t.Object(
  {
    stdout: t.String({ description: 'Text, with U+FFFD for bytes that are not UTF-8.' }),
    stderr: t.String({ description: 'Text, with U+FFFD for bytes that are not UTF-8.' }),
    stdoutBase64: t.Optional(
      t.String({ description: 'The exact bytes of `stdout`; only there if some were replaced.' }),
    ),
    stderrBase64: t.Optional(
      t.String({ description: 'The exact bytes of `stderr`; only there if some were replaced.' }),
    ),
    exitCode: integer({ description: '128+n where signal n ended the command.' }),
    timedOut: t.Boolean(),
    truncated: t.Boolean({ description: 'Each stream is kept to 10 MiB.' }),
    refused: t.Optional(
      t.Array(RefusedConnection, {
        description:
          'Connections of the server that berth refused meanwhile, and those that failed by its proxy, each with what helps; missing if there were none.',
      }),
    ),
  },
  { $id: 'ExecResult', additionalProperties: true },
)
export type ExecResult = Static<typeof ExecResult>

const { exitCode, timedOut, truncated, refused } = ExecResult.properties

/** A piece of what a command has printed, in a stream. */
const OutputChunk = t.Object(
  { data: t.String(), encoding: t.Optional(used(Base64Encoding, 'Where the bytes are not UTF-8.')) },
  { $id: 'OutputChunk' },
)

/** An event of the output of a command. */
export const ExecEvent = streamEvent('ExecEvent', {
  stdout: OutputChunk,
  stderr: OutputChunk,
  exit: t.Object({ exitCode, timedOut, truncated, refused }, { $id: 'ExecExit' }),
  error: ErrorBody,
})

/** States of an execution. `ended`: the server, berth, the budget or a limit ended it. */
export const EXECUTION_STATUSES = ['running', 'exited', 'ended'] as const

/** A command that runs without a request that waits for it. */
export const Execution = t.Object(
  {
    id: t.String(),
    serverId: t.String(),
    command: t.String(),
    pid: t.Nullable(integer(), {
      description: 'Of its shell, as programs of the server see it; null if it ended before that was known.',
    }),
    status: oneOf([...EXECUTION_STATUSES], {
      $id: 'ExecutionStatus',
      description:
        '`exited` if the command ended by itself or was cancelled; `ended` if the server, berth, the budget or a limit ended it.',
    }),
    exitCode: t.Nullable(integer(), {
      description: 'Null until it has exited; 128+n where signal n ended the command.',
    }),
    timedOut: t.Boolean(),
    stdoutBytes: integer({ minimum: 0, description: 'Bytes that it has printed.' }),
    stderrBytes: integer({ minimum: 0 }),
    startedAt: t.String({ format: 'date-time' }),
    endedAt: t.Nullable(t.String({ format: 'date-time' })),
  },
  { $id: 'Execution', additionalProperties: true },
)
export type Execution = Static<typeof Execution>

/** A piece of an execution's output. */
const OutputEntry = t.Object(
  {
    id: t.String({ description: 'The position behind this entry, for `after`.' }),
    stream: OutputStreamName,
    offset: integer({ minimum: 0, description: 'Bytes of the stream before this entry.' }),
    data: t.String(),
    encoding: t.Optional(used(Base64Encoding, 'Where the bytes are not UTF-8.')),
  },
  { $id: 'OutputEntry', additionalProperties: true },
)

/** A page of an execution's output. */
export const ExecutionOutput = t.Object(
  {
    output: t.Array(OutputEntry),
    next: t.String({ description: 'The position behind the last entry: `after` of the next request.' }),
    dropped: t.Object(
      { stdout: integer({ minimum: 0 }), stderr: integer({ minimum: 0 }) },
      {
        $id: 'DroppedOutput',
        additionalProperties: true,
        description:
          'Bytes that are not kept: of each stream those between the first 64 KiB and the last 1 MiB.',
      },
    ),
    execution: Execution,
  },
  { $id: 'ExecutionOutput', additionalProperties: true },
)
export type ExecutionOutput = Static<typeof ExecutionOutput>

/** An event of the output of an execution. */
export const ExecutionEvent = streamEvent('ExecutionEvent', {
  stdout: OutputChunk,
  stderr: OutputChunk,
  gap: t.Object(
    {
      stream: t.Optional(OutputStreamName),
      dropped: t.Optional(integer({ minimum: 0, description: 'Bytes that are not kept.' })),
    },
    { $id: 'OutputGap' },
  ),
  exit: t.Object(
    {
      status: Execution.properties.status,
      exitCode: Execution.properties.exitCode,
      timedOut,
      truncated: t.Optional(truncated),
    },
    { $id: 'ExecutionExit' },
  ),
  error: ErrorBody,
})

/** The form of a position in the output: the bytes of `stdout` and of `stderr` before it. */
const POSITION = '^(?:0|\\d{1,15}-\\d{1,15})$'

/** What to read of an execution's output. */
export const OutputRange = t.Object(
  {
    after: t.Optional(
      worded(
        t.String({
          pattern: POSITION,
          description: 'Only what was printed behind this `id` or `next`; without it from the beginning.',
        }),
        'the `id` of an entry, or `next` of a response',
      ),
    ),
    stream: t.Optional(OutputStreamName),
    limit: t.Optional(
      integer({
        minimum: 1,
        maximum: MAX_ENTRIES,
        description: `Most entries, each of at most 2 KiB; ${DEFAULT_ENTRIES} by default.`,
      }),
    ),
    follow: t.Optional(flagSchema('Wait up to 45 s until there is more, or it has ended.')),
  },
  { additionalProperties: true },
)
export type OutputRange = Static<typeof OutputRange>

/** Bytes for an execution's standard input. */
export const ExecutionInput = t.Object(
  {
    text: t.Optional(t.String({ description: 'Text to write.' })),
    base64: t.Optional(base64({ description: 'Bytes to write, in place of text.' })),
    end: t.Optional(t.Boolean({ description: 'End standard input after that.' })),
  },
  {
    $id: 'ExecutionInput',
    additionalProperties: false,
    examples: [{ text: 'yes\n' }],
    // For documents. Validation has no such condition, so `bytesOf` checks it: not both, and not nothing.
    not: {
      anyOf: [
        withFields(['text', 'base64']),
        {
          not: {
            anyOf: [
              withFields(['text']),
              withFields(['base64']),
              { type: 'object', properties: { end: { const: true } }, required: ['end'] },
            ],
          },
        },
      ],
    },
  },
)
export type ExecutionInput = Static<typeof ExecutionInput>
