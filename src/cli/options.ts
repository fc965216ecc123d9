import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseDuration } from '../runtime/duration.ts'
import { CommandError } from './errors.ts'

/** An option of a command, as data. The command's action receives a `Value` under the option's name. */
export interface OptionSpec<Value> {
  readonly description: string
  /** Name of its value in help texts and for completion. A switch has none. */
  readonly placeholder?: string
  /** One letter. */
  readonly short?: string
  /** Whether its value may be left out. The value is then true. */
  readonly isValueOptional?: true
  readonly choices?: readonly string[]
  /**
   * Parses the typed value.
   *
   * @throws InvalidArgumentError
   */
  read?(given: string, before: Value | undefined): Value
  /** The name of an option that excludes it. */
  readonly conflicts?: string
  /** Its group in the help text. */
  readonly group?: string
}

/** The options of a command, by their names in camel case: `budgetCap` is `--budget-cap`. */
export type OptionSpecs = Readonly<Record<string, OptionSpec<unknown>>>

/** The values of options, by name. */
export type OptionsOf<Specs> = {
  [Name in keyof Specs]?: (Specs[Name] extends OptionSpec<infer Value> ? Value : never) | undefined
}

/** Declares a switch. */
export const flag = (
  description: string,
  more: Pick<OptionSpec<true>, 'short' | 'conflicts'> = {},
): OptionSpec<true> => ({ description, ...more })

/** Declares an option with a text. */
export const textOption = (placeholder: string, description: string): OptionSpec<string> => ({
  placeholder,
  description,
})

/** Declares an option with a text that may be left out: the value is then true. */
export const optionalText = (placeholder: string, description: string): OptionSpec<string | true> => ({
  placeholder,
  description,
  isValueOptional: true,
})

/** Declares an option with one of several values. */
export const choiceOption = <const Value extends string>(
  placeholder: string,
  description: string,
  choices: readonly Value[],
): OptionSpec<Value> => ({ placeholder, description, choices })

/** Declares an option with a parsed value. */
export const parsed = <Value>(
  placeholder: string,
  description: string,
  read: (given: string) => Value,
): OptionSpec<Value> => ({ placeholder, description, read })

/** Declares an option that may be given several times. */
export const repeatedOption = (placeholder: string, description: string): OptionSpec<string[]> => ({
  placeholder,
  description,
  read: (given, before = []) => [...before, given],
})

/** Declares an option with a whole number. Messages describe it with `expected`, by default with the bounds. */
export const wholeNumber = (
  placeholder: string,
  description: string,
  { least = 0, most = Number.MAX_SAFE_INTEGER, expected = boundsText(least, most) } = {},
): OptionSpec<number> =>
  parsed(placeholder, description, (given) => {
    if (/^\d{1,16}$/.test(given) && Number(given) >= least && Number(given) <= most) return Number(given)
    throw new InvalidArgumentError(`Expected ${expected}.`)
  })

/** Declares `--tail`: the number of lines of a log. */
export const tail = (usual: number): OptionSpec<number> => ({
  ...wholeNumber('N', `only the last lines of what is there (default ${usual})`, {
    most: 99_999,
    expected: 'a whole number of lines',
  }),
  short: 'n',
})

const boundsText = (least: number, most: number): string =>
  [
    'a whole number',
    least > 0 ? ` from ${least}` : '',
    most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : '',
  ].join('')

/** Declares an option with a duration. Its value is in milliseconds. */
export const duration = (placeholder: string, description: string): OptionSpec<number> =>
  parsed(placeholder, description, (given) => {
    const ms = parseDuration(given)
    if (ms !== null) return ms
    throw new InvalidArgumentError('Expected a duration such as 500ms, 5s or 1m.')
  })

/** Converts the option to one of the command-line library. */
export function commanderOption(name: string, spec: OptionSpec<unknown>): Option {
  const { description, placeholder, short, choices, read, conflicts, group, isValueOptional } = spec
  const long = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  const letter = short ?? (name === 'server' ? 's' : undefined)
  const flags = `${letter ? `-${letter}, ` : ''}${long}${placeholder ? (isValueOptional ? ` [${placeholder}]` : ` <${placeholder}>`) : ''}`
  const option = new Option(flags, description)
  if (choices) option.choices(choices)
  if (read) option.argParser(read)
  if (conflicts) option.conflicts(conflicts)
  if (group) option.helpGroup(group)
  return option
}

/**
 * Returns an error of the API about a field of a request with the option or the argument of the command in its place; any
 * other error unchanged.
 */
export function inWordsOf(command: Command, error: unknown): unknown {
  if (!(error instanceof CommandError) || error.code !== 'bad_request') return error
  const [whole, field = ''] = /^"(\w+)" in the (?:body|query)/.exec(error.message) ?? []
  if (whole === undefined) return error
  const name = field.replace(/Ms$/, '').replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  const option = command.options.find((one) => one.attributeName() === name)
  const argument = command.registeredArguments.find((one) => one.name() === name.toUpperCase())
  const said = option?.long ?? argument?.name()
  if (said === undefined) return error
  const unit = field.endsWith('Ms') ? ', in milliseconds' : ''
  return new CommandError(`${said}${unit}${error.message.slice(whole.length)}`, error.exitCode, error.code)
}
