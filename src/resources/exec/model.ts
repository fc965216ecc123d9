import { type Static, t } from 'elysia'
import { base64, integer, NO_NUL, oneOf, variables, withFields, worded } from '../../contract/schema.ts'

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
      t.Array(t.Object({ destination: t.String(), reason: t.String(), remedy: t.String() }), {
        description:
          'Connections of the server that berth refused meanwhile, each with what would allow it; missing if there were none.',
      }),
    ),
  },
  { $id: 'ExecResult', additionalProperties: true },
)
export type ExecResult = Static<typeof ExecResult>

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

/** A page of an execution's output. */
export const ExecutionOutput = t.Object(
  {
    output: t.Array(
      t.Object({
        id: t.String({ description: 'The position behind this entry, for `after`.' }),
        stream: oneOf(['stdout', 'stderr']),
        offset: integer({ minimum: 0, description: 'Bytes of the stream before this entry.' }),
        data: t.String(),
        encoding: t.Optional(oneOf(['base64'], { description: 'Where the bytes are not UTF-8.' })),
      }),
    ),
    next: t.String({ description: 'The position behind the last entry: `after` of the next request.' }),
    dropped: t.Object(
      { stdout: integer({ minimum: 0 }), stderr: integer({ minimum: 0 }) },
      {
        description:
          'Bytes that are not kept: of each stream those between the first 64 KiB and the last 1 MiB.',
      },
    ),
    execution: Execution,
  },
  { $id: 'ExecutionOutput', additionalProperties: true },
)
export type ExecutionOutput = Static<typeof ExecutionOutput>

/** The form of a position in the output: the bytes of `stdout` and of `stderr` before it. */
const POSITION = '^(?:0|\\d{1,15}-\\d{1,15})$'

/** What to read of an execution's output. */
export const OutputQuery = t.Object(
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
    stream: t.Optional(oneOf(['stdout', 'stderr'])),
    limit: t.Optional(
      integer({
        minimum: 1,
        maximum: MAX_ENTRIES,
        description: `Most entries, each of at most 2 KiB; ${DEFAULT_ENTRIES} by default.`,
      }),
    ),
    follow: t.Optional(
      oneOf(['true', 'false'], { description: 'Wait up to 45 s until there is more, or it has ended.' }),
    ),
  },
  { additionalProperties: true },
)
export type OutputQuery = Static<typeof OutputQuery>

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
        { properties: { text: false, base64: false, end: { const: false } } },
      ],
    },
  },
)
export type ExecutionInput = Static<typeof ExecutionInput>
