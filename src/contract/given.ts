/** Where a value stands in what was given: keys and indexes from the top, such as `scenarios`, 1, `steps`. */
export type Place = readonly (string | number)[]

/** Something given is not as it must be: where it stands and what was expected there. */
export class Mistake extends Error {
  override readonly name = 'Mistake'

  /**
   * @param reason a sentence that follows a colon: `expected a text, got 5.`
   * @param at whether the value is wrong or the key that it has; one that is missing has neither
   */
  constructor(
    readonly place: Place,
    readonly reason: string,
    readonly at: 'value' | 'key' | 'missing' = 'value',
  ) {
    super(reason)
  }

  /** What is wrong and where. @param where follows the place, such as `in the body` */
  sentence(where = ''): string {
    const place = placeText(this.place)
    const subject = [place === '' ? '' : `"${place}"`, where].filter(Boolean).join(' ')
    return subject === '' ? this.reason : `${subject}: ${this.reason}`
  }
}

/** A place in writing: `scenarios[1].steps[0].run`; empty for the whole. */
const placeText = (place: Place): string =>
  place
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '')

/** A value of unknown shape, such as JSON that somebody wrote, with the place where it stands. */
export class Given {
  constructor(
    readonly value: unknown,
    readonly place: Place = [],
  ) {}

  /** What is wrong with it, to be thrown. */
  mistake(expected: string): Mistake {
    return new Mistake(this.place, `expected ${expected}, got ${shown(this.value)}.`)
  }

  /** A text; it may be empty. @throws Mistake */
  text(expected = 'a text'): string {
    if (typeof this.value === 'string') return this.value
    throw this.mistake(expected)
  }

  /** A text with something in it. @throws Mistake */
  filledText(expected = 'a text'): string {
    const text = this.text(expected)
    if (text.trim() !== '') return text
    throw this.mistake(`${expected} that is not empty`)
  }

  /** A whole number, both bounds included. @throws Mistake */
  integer(least: number, most: number): number {
    const { value } = this
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
      return value as number
    }
    throw this.mistake(`a whole number from ${least} to ${most}`)
  }

  /** The entries of a list. @throws Mistake */
  list(expected = 'a list'): Given[] {
    if (!Array.isArray(this.value)) throw this.mistake(expected)
    return this.value.map((entry, index) => new Given(entry, [...this.place, index]))
  }

  /** Whether it is an object, which lists are not. */
  get isObject(): boolean {
    return typeof this.value === 'object' && this.value !== null && !Array.isArray(this.value)
  }

  /** The values of an object, whatever their keys, which are the last part of their places. @throws Mistake */
  entries(expected = 'an object'): Given[] {
    if (!this.isObject) throw this.mistake(expected)
    return Object.entries(this.value as object).map(([key, value]) => new Given(value, [...this.place, key]))
  }

  /** One field of an object, where it has it. */
  field(key: string): Given | undefined {
    if (!this.isObject || !Object.hasOwn(this.value as object, key)) return undefined
    return new Given((this.value as Record<string, unknown>)[key], [...this.place, key])
  }

  /** The fields of an object, of which all must be known. @throws Mistake */
  fields<Known extends string>(known: readonly Known[], expected = 'an object'): Fields<Known> {
    if (!this.isObject) throw this.mistake(expected)
    const found: Fields<Known> = {}
    for (const [key, value] of Object.entries(this.value as object)) {
      const place = [...this.place, key]
      if (!isOneOf(known, key)) {
        throw new Mistake(place, `there is no such field; known are ${known.join(', ')}.`, 'key')
      }
      found[key] = new Given(value, place)
    }
    return found
  }

  /** A field that must be there and is not. @throws Mistake, always */
  missing(field: string, expected = 'a text'): never {
    throw new Mistake([...this.place, field], `it is missing; expected ${expected}.`, 'missing')
  }
}

/** The fields that an object has, by name. */
export type Fields<Known extends string> = { [Name in Known]?: Given }

const isOneOf = <Known extends string>(known: readonly Known[], key: string): key is Known =>
  (known as readonly string[]).includes(key)

/** A value, short enough for a sentence. */
function shown(value: unknown): string {
  const text = written(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

function written(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    // YAML can say of a value that it holds itself; others are nested too deeply.
    return 'one that holds itself, or is nested too deeply to be shown'
  }
}
