import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { oneOf, used, worded } from '../../contract/schema.ts'
import { DURATION_UNITS } from '../../runtime/duration.ts'

/** A string that is not blank. */
const nonBlank = (description: string) => Type.String({ pattern: '\\S', description })

/** An object without unknown fields. */
const closedObject = <Fields extends TProperties>(
  fields: Fields,
  options: { $id?: string; description?: string } = {},
) => Type.Object(fields, { additionalProperties: false, ...options })

const DURATION = `^\\s*\\d+(\\.\\d+)?(${DURATION_UNITS})?\\s*$`
const DURATION_WORDS = 'a duration such as 500ms, 2s or 10m'

const Duration = worded(
  Type.Union([Type.String({ pattern: DURATION }), Type.Number({ minimum: 0 })], { $id: 'StepDuration' }),
  DURATION_WORDS,
)

const as = Type.Optional(
  worded(
    Type.String({
      pattern: '^(?!goal$)[A-Za-z_]\\w*$',
      description: 'Names the result for later steps: {{NAME}}.',
    }),
    'a name of letters, digits and "_" that is not "goal"',
  ),
)

/**
 * A step that is its main field, or in its long form an object with it and others.
 *
 * @param kind how its shapes are called: `RunValue`, and `RunFields` for the object
 */
const longForm = <Main extends string, More extends TProperties>(
  kind: string,
  main: Main,
  description: string,
  more: More,
) =>
  Type.Union(
    [
      nonBlank(description),
      closedObject(
        { [main]: nonBlank(description), ...more } as Record<Main, ReturnType<typeof nonBlank>> & More,
        { $id: `${kind}Fields` },
      ),
    ],
    { $id: `${kind}Value` },
  )

/** The value of each kind of step. */
const STEPS = {
  run: longForm('Run', 'command', 'A shell command; a code other than 0 ends the task as failed.', {
    cwd: Type.Optional(Type.String({ description: 'Directory of the workspace to run it in.' })),
    timeout: Type.Optional(used(Duration, 'After which it is ended; 10m by default.')),
    expect: Type.Optional(
      worded(
        Type.Union([Type.Integer({ minimum: 0, maximum: 255 }), Type.Literal('any')], {
          $id: 'ExpectedExitCode',
          description: 'The exit code that is a success.',
        }),
        'an exit code from 0 to 255, or "any"',
      ),
    ),
    as,
  }),
  write: closedObject(
    {
      path: nonBlank('The file to make or replace.'),
      content: Type.String({ description: 'All that stands in it.' }),
      verbatim: Type.Optional(Type.Boolean({ description: 'true: no values are put into the content.' })),
    },
    { $id: 'WriteFields' },
  ),
  read: longForm('Read', 'path', 'A text file.', { as }),
  ask: longForm('Ask', 'question', 'What the caller is asked; the answer is {{answer}}.', { as }),
  say: nonBlank('A message of the transcript.'),
  wait: used(Duration, "Waits, by berth's clock."),
  hold: Type.Literal(true, { description: 'Waits until POST /_berth/tasks/{id}/release.' }),
  complete: nonBlank('Ends the task with this result.'),
  fail: nonBlank('Ends the task as failed with this result.'),
}

/** The kinds of steps, as they are written. */
export type StepKind = keyof typeof STEPS
export const STEP_KINDS = Object.keys(STEPS) as readonly StepKind[]

/** The schema of a kind of step. */
export const StepKindName = oneOf([...STEP_KINDS] as [StepKind, ...StepKind[]], { $id: 'StepKind' })

/** One step: an object with its kind as the only key. */
export const StepText = Type.Union(
  STEP_KINDS.map((kind) =>
    closedObject(
      { [kind]: STEPS[kind] as TSchema },
      { $id: `${kind.charAt(0).toUpperCase()}${kind.slice(1)}Step` },
    ),
  ),
  { $id: 'Step' },
) as TSchema

const accountId = nonBlank('Only goals of this account.')

/** The goals that a scenario is for. */
const Match = Type.Union(
  [
    nonBlank('The goal, exactly.'),
    closedObject(
      {
        glob: nonBlank('The whole goal; * is any text, ? one character.'),
        account_id: Type.Optional(accountId),
      },
      { $id: 'GlobMatch' },
    ),
    closedObject(
      {
        regex: nonBlank('An expression in RE2 syntax that is found in the goal.'),
        account_id: Type.Optional(accountId),
      },
      { $id: 'RegexMatch' },
    ),
    closedObject(
      { account_id: accountId },
      { $id: 'AccountMatch', description: 'Every goal of an account.' },
    ),
  ],
  { $id: 'ScenarioMatch', description: 'The goals that it is for.' },
)

/** The fields of a written scenario. */
export const SCENARIO_FIELDS = {
  name: Type.Optional(nonBlank('What it is called in transcripts.')),
  match: worded(Match, 'a string, {"glob": …} or {"regex": …}'),
  steps: Type.Array(StepText, { minItems: 1, maxItems: 1_000 }),
}

/** A scenario in the form of the control API, of fixtures files and of the database. */
export const ScenarioText = closedObject(SCENARIO_FIELDS, { $id: 'ScenarioCreate' })
export type ScenarioText = Static<typeof ScenarioText>

/** All scenarios that are set at once. */
export const ScenarioTexts = Type.Array(ScenarioText, { maxItems: 1_000 })
