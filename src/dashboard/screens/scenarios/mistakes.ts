import { JsonDocument, JsonSyntaxError } from '../../../runtime/validation/json-document.ts'
import {
  type JsonPath,
  type MistakeKind,
  ValidationError,
} from '../../../runtime/validation/validation-error.ts'
import { ApiFailure } from '../../api/failure.ts'

/** What is wrong with a text: sentences, and the lines that they are about, from 1. */
export interface Mistakes {
  readonly message: string
  readonly lines: readonly number[]
}

/** A text that is not as it has to be. */
export class TextError extends Error {
  override readonly name = 'TextError'

  constructor(readonly mistakes: Mistakes) {
    super(mistakes.message)
  }
}

/** Parses a JSON text. @throws TextError */
export function parseText(text: string): unknown {
  try {
    return new JsonDocument(text).value
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw new TextError(mistakesOf(error.message.replace(' The file must be valid JSON.', '')))
  }
}

/** Mistakes of a body, as the API tells them: the path, how the sentence goes on, and the reason. */
const MISTAKE =
  /"([^"]+)" in the body( is missing: expected |: | is not a known field)(.*?)(?= "[^"]+" in the body[: ]|$)/gs

const KINDS: Readonly<Record<string, MistakeKind>> = {
  ': ': 'value',
  ' is missing: expected ': 'missing',
  ' is not a known field': 'unknown',
}

/**
 * Returns the mistakes that a failed call tells of a value, at their places in the text that the value was written as.
 *
 * @param above the path of the value in the body
 */
export function mistakesIn(text: string, failure: unknown, above: JsonPath): Mistakes | null {
  if (!(failure instanceof ApiFailure) || failure.status !== 400) return null
  const found = [...failure.message.matchAll(MISTAKE)].flatMap(([, path = '', words = '', reason = '']) => {
    const steps = pathOf(path)
    if (above.some((step, index) => steps[index] !== step)) return []
    return [new ValidationError(steps.slice(above.length), reason.trim(), KINDS[words] ?? 'value')]
  })
  const [first, ...others] = found
  return first ? mistakesOf(new JsonDocument(text).describe(first.with(others))) : null
}

const mistakesOf = (message: string): Mistakes => ({
  message: message.replace(/^l/, 'L'),
  lines: [...message.matchAll(/\bline (\d+), column/gi)].map(([, line]) => Number(line)),
})

/** Parses a path in writing: `scenarios[1].steps[0].run`. */
const pathOf = (path: string): JsonPath =>
  [...path.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([word, index]) =>
    index === undefined ? word : Number(index),
  )
