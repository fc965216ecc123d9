/** Where a value stands in a document: keys and indexes from the top, such as `scenarios`, 1, `steps`. */
export type JsonPath = readonly (string | number)[]

/** Mistakes that one message lists at most. @bound reader */
const MOST_LISTED = 5

/** What a mistake is about: a value that is wrong, a key that is or that comes twice, or a value that is not there. */
export type MistakeKind = 'value' | 'key' | 'missing' | 'unknown' | 'repeated'

/** Reports that a value is not what was expected at its path. */
export class ValidationError extends Error {
  override readonly name = 'ValidationError'
  /** Mistakes that were found together with this one, in the order in which they are listed. */
  readonly others: readonly ValidationError[]

  /**
   * @param reason a sentence that follows a colon: `expected a string, got 5.` Of a missing value it says what was expected
   * (`a string`); of an unknown key which are known, or nothing; of a repeated one what to do
   */
  constructor(
    readonly path: JsonPath,
    readonly reason: string,
    readonly kind: MistakeKind = 'value',
    others: readonly ValidationError[] = [],
  ) {
    super(reason)
    this.others = others
  }

  /** All mistakes that were found together, this one first. */
  get all(): readonly ValidationError[] {
    return [this, ...this.others]
  }

  /** Returns the same mistake, found together with others. */
  with(others: readonly ValidationError[]): ValidationError {
    return new ValidationError(this.path, this.reason, this.kind, others)
  }

  /** Returns the same mistake with a path that begins with a key. */
  below(key: string): ValidationError {
    return new ValidationError([key, ...this.path], this.reason, this.kind, this.others)
  }

  /**
   * Describes this mistake alone.
   *
   * @param where the part of a request that the path begins in, such as `body`; empty for a file
   */
  sentence(where = ''): string {
    const path = pathText(this.path)
    if (path === '' && this.kind !== 'repeated')
      return where === '' ? this.reason : `The ${where}: ${this.reason}`
    const subject = where === '' ? `"${path}"` : `"${path}" in the ${where}`
    if (this.kind === 'missing') return `${subject} is missing: expected ${this.reason}.`
    if (this.kind === 'repeated') return `${subject} is there twice: ${this.reason}.`
    if (this.kind !== 'unknown') return `${subject}: ${this.reason}`
    const noun = where === 'query' ? 'parameter' : 'field'
    return `${subject} is not a known ${noun}${this.reason}`
  }

  /** Describes all mistakes of a part of a request. */
  describe(where: string): string {
    return listMistakes(this.all, (mistake) => mistake.sentence(where))
  }
}

/** Lists mistakes: the first few, and how many more there are. @param describe makes a sentence of one */
export function listMistakes(
  mistakes: readonly ValidationError[],
  describe: (mistake: ValidationError) => string,
): string {
  const listed = mistakes.slice(0, MOST_LISTED).map(describe)
  const left = mistakes.length - listed.length
  if (left > 0) listed.push(left === 1 ? 'There is one more mistake.' : `There are ${left} more mistakes.`)
  return listed.join(' ')
}

/** Formats a path as text: `scenarios[1].steps[0].run`; empty for the whole document. */
const pathText = (path: JsonPath): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '')

/** Formats a value as JSON, short enough for a sentence. */
export function shown(value: unknown): string {
  const text = written(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

function written(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'nothing'
  } catch {
    // YAML can nest a value in itself; others are nested too deeply.
    return 'one that contains itself, or is nested too deeply to be shown'
  }
}

/** Names the kind of a value, without showing the value. */
export function valueKindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'boolean') return 'true or false'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Returns the mistake that a name which may come once comes again. */
export const repeatedName = (path: JsonPath): ValidationError =>
  new ValidationError(path, 'name it once', 'repeated')

/** Refuses text that has half a surrogate pair, which no encoding can carry (Unicode 16, D75). */
export const brokenText = (path: JsonPath): ValidationError =>
  new ValidationError(
    path,
    'expected Unicode text, got half a surrogate pair (\\ud800 to \\udfff without its other half).',
  )
