/** A text with something in it. */
const filled = (description: string) => ({ type: 'string', pattern: '\\S', description })

/** An object of which all fields are known. */
const closed = (properties: Readonly<Record<string, object>>, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  ...(required.length > 0 ? { required } : {}),
  additionalProperties: false,
})

const DURATION = '^\\s*\\d+(\\.\\d+)?(ms|s|m|h|d)?\\s*$'
const duration = (description: string) => ({
  anyOf: [
    { type: 'string', pattern: DURATION },
    { type: 'number', minimum: 0 },
  ],
  description,
})

const as = {
  type: 'string',
  pattern: '^(?!goal$)[A-Za-z_]\\w*$',
  description: 'Names it for later steps: {{NAME}}.',
}

/** A step as its main field alone, or with more. */
const longForm = (main: string, description: string, more: Readonly<Record<string, object>>) => ({
  anyOf: [filled(description), closed({ [main]: filled(description), ...more }, [main])],
})

const STEPS: Readonly<Record<string, object>> = {
  run: longForm('command', 'A shell command; a code other than 0 ends the task as failed.', {
    cwd: { type: 'string', description: 'Folder of the workspace to run it in.' },
    timeout: duration('After which it is ended; 10m by default.'),
    expect: {
      anyOf: [{ type: 'integer', minimum: 0, maximum: 255 }, { const: 'any' }],
      description: 'The exit code that is a success.',
    },
    as,
  }),
  write: closed(
    {
      path: filled('The file to make or replace.'),
      content: { type: 'string', description: 'All that stands in it.' },
      verbatim: { type: 'boolean', description: 'true: no values are put into the content.' },
    },
    ['path', 'content'],
  ),
  read: longForm('path', 'A text file.', { as }),
  ask: longForm('question', 'What the caller is asked; the answer is {{answer}}.', { as }),
  say: filled('A message of the transcript.'),
  wait: duration("Waits, by berth's clock."),
  hold: { const: true, description: 'Waits until POST /_berth/tasks/{id}/release.' },
  complete: filled('Ends the task with this result.'),
  fail: filled('Ends the task as failed with this result.'),
}

/**
 * What a scenario looks like, as JSON Schema (draft 7), for editors. `read.ts` decides: it knows expressions, the
 * values that a text may use, and which step may follow which. A test holds the two together.
 */
export const scenarioShape = closed(
  {
    name: filled('What it is called in transcripts.'),
    match: {
      anyOf: [
        filled('The goal, exactly.'),
        closed({ glob: filled('The whole goal; * is any text, ? one character.') }, ['glob']),
        closed({ regex: filled('An expression in RE2 syntax that is found in the goal.') }, ['regex']),
      ],
      description: 'The goals that it is for.',
    },
    steps: {
      type: 'array',
      minItems: 1,
      maxItems: 1_000,
      items: {
        anyOf: Object.entries(STEPS).map(([name, shape]) => closed({ [name]: shape }, [name])),
      },
    },
  },
  ['match', 'steps'],
)
