import { type JsonPath, shown, ValidationError } from './validation-error.ts'

/**
 * A value of a JSON document with its path there. For what a schema cannot say: names that must exist, texts with a syntax
 * of their own. The shape of the value has been checked before (validate.ts).
 */
export class JsonReader {
  constructor(
    readonly value: unknown,
    readonly path: JsonPath = [],
  ) {}

  /** Makes an error about the value. @param expected words that follow "expected" */
  error(expected: string): ValidationError {
    return new ValidationError(this.path, `expected ${expected}, got ${shown(this.value)}.`)
  }

  /** Returns the value as text. */
  text(): string {
    return String(this.value)
  }

  /** Whether the value is an object, which arrays are not. */
  get isObject(): boolean {
    return typeof this.value === 'object' && this.value !== null && !Array.isArray(this.value)
  }

  /** Returns the values of an array. */
  list(): JsonReader[] {
    return (this.value as unknown[]).map((entry, index) => new JsonReader(entry, [...this.path, index]))
  }

  /** Returns the values of an object. Their keys are the last parts of their paths. */
  entries(): JsonReader[] {
    return Object.entries(this.value as object).map(
      ([key, value]) => new JsonReader(value, [...this.path, key]),
    )
  }

  /** Returns a field of an object; undefined if it has none of this name. */
  field(key: string): JsonReader | undefined {
    if (!this.isObject || !Object.hasOwn(this.value as object, key)) return undefined
    return new JsonReader((this.value as Record<string, unknown>)[key], [...this.path, key])
  }

  /** Returns a field that the schema requires. */
  required(key: string): JsonReader {
    return new JsonReader((this.value as Record<string, unknown>)[key], [...this.path, key])
  }
}
