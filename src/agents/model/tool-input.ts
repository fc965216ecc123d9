import type { JSONSchema7, LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import type { Static, TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

/** A tool call with invalid arguments. The message is for the model. */
export class MalformedCall extends Error {
  override readonly name = 'MalformedCall'
}

/** Returns a tool in the form of the library. */
export const functionTool = (
  name: string,
  description: string,
  input: TObject,
): LanguageModelV4FunctionTool => ({
  type: 'function',
  name,
  description,
  // A TypeBox schema is a JSON schema; its type has symbols besides.
  inputSchema: { ...input, additionalProperties: false } as unknown as JSONSchema7,
})

/**
 * Parses the arguments of a tool call by its schema. Empty text is no arguments; numbers given as text are converted;
 * nulls and unknown fields are dropped.
 *
 * @throws MalformedCall if they are not JSON or do not fit the schema
 */
export function readInput<Input extends TObject>(schema: Input, input: string): Static<Input> {
  let read: unknown
  try {
    read = input.trim() === '' ? {} : JSON.parse(input)
  } catch (error) {
    throw new MalformedCall(`The arguments are no JSON: ${error instanceof Error ? error.message : error}.`)
  }
  const given = Value.Clean(schema, Value.Convert(schema, withoutNulls(read)))
  const [problem] = Value.Errors(schema, given)
  if (problem) {
    const name = problem.path.slice(1)
    throw new MalformedCall(
      name === '' ? 'The arguments must be an object.' : `"${name}": ${problem.message}.`,
    )
  }
  return given as Static<Input>
}

/** Arguments that are left out are null in the calls of some models. */
const withoutNulls = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null))
    : value
