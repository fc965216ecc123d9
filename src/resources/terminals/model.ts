import { type Static, t } from 'elysia'
import { integer, NO_NUL, variables } from '../../contract/schema.ts'

/** Most columns, and most rows, of a terminal. */
export const MAX_CELLS = 10_000

/** The size of terminals whose creator names none. */
export const DEFAULT_SIZE = { columns: 80, rows: 24 }

/** The form of names: one word, as arguments of a command are. */
const NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'

const columns = integer({ minimum: 1, maximum: MAX_CELLS, description: 'Characters in a row.' })
const rows = integer({ minimum: 1, maximum: MAX_CELLS, description: 'Rows of the screen.' })

/** A terminal of a server. */
export const Terminal = t.Object(
  {
    id: t.String(),
    name: t.String({ description: "Unique among the server's terminals that have not ended." }),
    command: t.Nullable(t.String(), { description: 'Null for a login shell.' }),
    cwd: t.String({ description: 'Folder in which it began, relative to the workspace; empty for that.' }),
    columns,
    rows,
    viewers: integer({ description: 'Viewers that are attached.' }),
    started_at: t.String({ format: 'date-time' }),
    last_used_at: t.String({
      format: 'date-time',
      description: 'When it last printed or was typed on, or a viewer came or left.',
    }),
    exit_code: t.Nullable(integer(), {
      description: 'Null while it runs; 128+n where signal n ended the program.',
    }),
  },
  { $id: 'Terminal', additionalProperties: false },
)
export type Terminal = Static<typeof Terminal>

/** Parameters of a new terminal. */
export const TerminalCreate = t.Object(
  {
    command: t.Optional(
      t.String({
        minLength: 1,
        pattern: NO_NUL,
        description: 'Given to `sh -c`; left out: a login shell (`$SHELL` of `env`, bash or sh).',
      }),
    ),
    cwd: t.Optional(
      t.String({ maxLength: 4096, pattern: NO_NUL, description: 'Folder inside the workspace.' }),
    ),
    env: t.Optional(
      variables(t.String({ maxLength: 65_536, pattern: NO_NUL }), {
        description: 'Variables on top of the base environment; names match [A-Za-z_][A-Za-z0-9_]*.',
      }),
    ),
    columns: t.Optional(columns),
    rows: t.Optional(rows),
    name: t.Optional(
      t.String({
        pattern: NAME,
        title: 'a name of at most 64 letters, digits, ".", "_" and "-" that begins with a letter or digit',
        description: 'Left out: by the program.',
      }),
    ),
  },
  {
    $id: 'TerminalCreate',
    additionalProperties: false,
    examples: [{ command: 'top', columns: 120, rows: 40 }],
  },
)
export type TerminalCreate = Static<typeof TerminalCreate>

/** The size of a viewer that attaches. */
export const AttachQuery = t.Object(
  { columns: t.Optional(columns), rows: t.Optional(rows) },
  { additionalProperties: false },
)
export type AttachQuery = Static<typeof AttachQuery>
