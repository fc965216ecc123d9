import { BerthError, type StartupError } from '../../errors.ts'
import { type JsonPath, ValidationError } from '../../runtime/validation/validation-error.ts'
import type { FixturesDocument } from './document.ts'

/** Something that a fixtures file says, with where it stands there. */
export class Declared<Value> {
  readonly #document: FixturesDocument
  readonly #path: JsonPath

  constructor(
    document: FixturesDocument,
    path: JsonPath,
    /** Its key among those of its kind. */
    readonly name: string,
    readonly value: Value,
  ) {
    this.#document = document
    this.#path = path
  }

  /** The file that it stands in. */
  get file(): string {
    return this.#document.path
  }

  /** The same with another value. */
  with<Other>(value: Other): Declared<Other> {
    return new Declared(this.#document, this.#path, this.name, value)
  }

  /**
   * What stops the start, with file, line and column.
   *
   * @param reason a sentence
   * @param inner where it stands within: `tier`, or `files` and a path
   */
  refusal(reason: string, ...inner: readonly (string | number)[]): StartupError {
    return this.#document.refusal(new ValidationError([...this.#path, ...inner], reason))
  }

  /** Does something for it; what the API would refuse stops the start. @throws StartupError */
  async telling<T>(work: () => T | Promise<T>, ...inner: readonly (string | number)[]): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof BerthError) throw this.refusal(error.message, ...inner)
      throw error
    }
  }
}
