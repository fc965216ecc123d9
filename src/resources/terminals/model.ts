import { type Static, t } from 'elysia'
import { integer, NO_NUL, oneOf, variables } from '../../contract/schema.ts'
import { KEY_NAMES } from './keys.ts'

/** Most columns, and most rows, of a terminal. @bound client */
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
    cwd: t.String({ description: 'Directory in which it began, relative to the workspace; empty for that.' }),
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
  { $id: 'Terminal', additionalProperties: true },
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
      t.String({ maxLength: 4096, pattern: NO_NUL, description: 'Directory inside the workspace.' }),
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

/** Longest pattern, characters. @bound peer */
const MAX_PATTERN = 200

/** Longest wait, milliseconds. */
const MAX_WAIT_MS = 600_000

/** What a request waits for before it responds with the screen. */
const WAIT_FIELDS = {
  until: t.Optional(
    t.String({
      minLength: 1,
      maxLength: MAX_PATTERN,
      description:
        'Respond as soon as this is shown: a regular expression in the syntax of RE2, matched line by line (`^` and `$` are the ends of a line).',
    }),
  ),
  quiet_ms: t.Optional(
    integer({
      minimum: 0,
      maximum: MAX_WAIT_MS,
      description: 'Respond as soon as nothing was printed for this many milliseconds.',
    }),
  ),
  timeout_ms: t.Optional(
    integer({
      minimum: 0,
      maximum: MAX_WAIT_MS,
      description: 'Milliseconds after which it responds in any case; 10000 by default.',
    }),
  ),
  lines: t.Optional(
    integer({
      minimum: 0,
      maximum: MAX_CELLS,
      description: 'How many rows above the screen to include as `scrollback`; none by default.',
    }),
  ),
}

/** What to wait for before the screen is read. */
export const ScreenQuery = t.Object(WAIT_FIELDS, { additionalProperties: false })
export type ScreenQuery = Static<typeof ScreenQuery>

/** What to type on a terminal, and what to wait for then. */
export const TerminalInput = t.Object(
  {
    text: t.Optional(
      t.String({
        maxLength: 1024 * 1024,
        description: 'Typed first, as it is. A line feed in it presses Enter.',
      }),
    ),
    keys: t.Optional(
      t.Array(t.String({ minLength: 1, maxLength: 32 }), {
        maxItems: 1_000,
        description: `Keys that are pressed after the text, by name: ${KEY_NAMES}.`,
      }),
    ),
    paste: t.Optional(
      t.Boolean({
        description:
          'Whether the text is pasted, which many programs tell from typing: they take its lines as one, without indenting them again.',
      }),
    ),
    ...WAIT_FIELDS,
  },
  {
    $id: 'TerminalInput',
    additionalProperties: false,
    examples: [{ text: 'python3 -q', keys: ['enter'], until: '>>> $' }],
  },
)
export type TerminalInput = Static<typeof TerminalInput>

/** The screen of a terminal as text, and why a wait for it has ended. */
export const TerminalScreen = t.Object(
  {
    text: t.String({
      description:
        'The rows from the top, joined by line feeds, without blanks at their ends and empty rows at the bottom.',
    }),
    scrollback: t.String({ description: 'The rows above it that `lines` has asked for, else empty.' }),
    cursor: t.Object(
      { row: integer(), column: integer(), visible: t.Boolean() },
      {
        $id: 'CursorPosition',
        description: 'From row 0, column 0. Wide characters take two columns.',
        additionalProperties: true,
      },
    ),
    title: t.String({ description: 'The title that the program has set.' }),
    alternate_screen: t.Boolean({
      description: 'Whether a program has the whole screen to itself, as vim and less have it.',
    }),
    columns,
    rows,
    exit_code: t.Nullable(integer(), {
      description: 'Null while its program runs; 128+n where signal n ended it.',
    }),
    outcome: oneOf(['none', 'matched', 'quiet', 'exited', 'timeout'], {
      $id: 'ScreenOutcome',
      description:
        'Why it responds now: nothing was waited for, `until` matched, nothing was printed for `quiet_ms`, the program has ended, or the time was over.',
    }),
    match: t.Nullable(t.String(), { description: 'The text that `until` matched.' }),
  },
  { $id: 'TerminalScreen', additionalProperties: true },
)
export type TerminalScreen = Static<typeof TerminalScreen>
