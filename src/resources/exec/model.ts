import { type Static, t } from 'elysia'
import { integer, NO_NUL, variables } from '../../contract/schema.ts'

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
        description: 'Milliseconds after which the command is ended; 10 minutes by default.',
      }),
    ),
  },
  { $id: 'ExecRequest', additionalProperties: true, examples: [{ command: 'uname -a' }] },
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

/** The end of a command and its output. A command that fails is no failure of the request. */
export const ExecResult = t.Object(
  {
    stdout: t.String(),
    stderr: t.String(),
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
