import { RE2JS } from 're2js'
import type { JsonReader } from '../../runtime/validation/json-reader.ts'
import { ValidationError } from '../../runtime/validation/validation-error.ts'
import type { Matcher } from './scenario.ts'

/** Characters of a goal that expressions and globs look at. */
const LOOKED_AT = 16_384

/** Instructions of a compiled expression: with as many characters it bounds how long a match can take. */
const MOST_INSTRUCTIONS = 1_000

/** Names that values have already. */
const TAKEN = ['goal']

/**
 * Reads what goals a scenario is for: a text that is the whole goal, `{glob}` or `{regex}`. Whitespace around a goal
 * does not count.
 *
 * @throws ValidationError
 */
export function readMatcher(given: JsonReader): Matcher {
  if (!given.isObject) return whole(given.text().trim())
  const glob = given.field('glob')
  if (glob) return expression(glob, `^(?:${globSource(glob.text().trim())})$`, RE2JS.DOTALL)
  const regex = given.required('regex')
  return expression(regex, regex.text(), 0)
}

const NO_VALUES: ReadonlyMap<string, string> = new Map()

const whole = (text: string): Matcher => ({
  names: [],
  match: (goal) => (goal.trim() === text ? NO_VALUES : null),
})

/**
 * A regular expression, found anywhere in the goal. It runs on what a caller chose, so that the engine is one that
 * takes time in proportion to the goal: RE2's, which knows neither backreferences nor lookaround.
 */
function expression(given: JsonReader, source: string, flags: number): Matcher {
  const pattern = compile(given, source, flags)
  const names = Object.keys(pattern.namedGroups())
  const taken = names.find((name) => TAKEN.includes(name))
  if (taken !== undefined)
    throw given.error(`other names of groups than "${taken}", which is a value of berth's own`)
  return {
    names,
    match(goal) {
      const matcher = pattern.matcher(goal.trim().slice(0, LOOKED_AT))
      if (!matcher.find()) return null
      return new Map(names.map((name) => [name, matcher.group(name) ?? '']))
    },
  }
}

function compile(given: JsonReader, source: string, flags: number): RE2JS {
  let pattern: RE2JS
  try {
    pattern = RE2JS.compile(source, flags)
  } catch (error) {
    const reason =
      error instanceof Error ? error.message.replace('error parsing regexp: ', '') : String(error)
    throw new ValidationError(
      given.path,
      `expected a regular expression in RE2's syntax, which has no lookaround and no backreferences: ${reason}.`,
    )
  }
  if (pattern.programSize() <= MOST_INSTRUCTIONS) return pattern
  throw given.error('a smaller expression: repetitions such as {1,100} count as often as they repeat')
}

/** The expression of a glob: `*` is any text, `?` one character, `\` takes the next one as it is. */
const globSource = (glob: string): string =>
  glob.replace(/\\([\s\S])|[\s\S]/gu, (part, escaped?: string) => {
    if (part === '*') return '.*'
    if (part === '?') return '.'
    return RE2JS.quote(escaped ?? part)
  })
