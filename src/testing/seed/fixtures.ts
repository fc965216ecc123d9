import type { FileScenario } from '../../agents/agents.ts'
import { BerthError, type StartupError } from '../../errors.ts'
import { type JsonPath, ValidationError } from '../../runtime/validation/validation-error.ts'
import type { FaultText } from '../faults/fault.ts'
import type { ClockFixture } from './clock.ts'
import type { FixturesDocument } from './document.ts'
import type {
  AccountFixture,
  KeyFixture,
  ProjectFixture,
  SecretsFixture,
  ServerFixture,
  WebhookFixture,
} from './resolve.ts'

/** The content of fixtures files, by section. The sections of several files are joined in order. */
export interface Fixtures {
  /** At most one. */
  readonly clock: readonly FixtureEntry<ClockFixture>[]
  readonly accounts: readonly FixtureEntry<AccountFixture>[]
  readonly servers: readonly FixtureEntry<ServerFixture>[]
  readonly projects: readonly FixtureEntry<ProjectFixture>[]
  /** Secrets that are given separately from their server or project. */
  readonly secrets: readonly FixtureEntry<SecretsFixture>[]
  readonly keys: readonly FixtureEntry<KeyFixture>[]
  readonly webhooks: readonly FixtureEntry<WebhookFixture>[]
  readonly scenarios: readonly FileScenario[]
  readonly faults: readonly FixtureEntry<FaultFixture>[]
}

/** A fault, and the name of the account that it is for. */
export interface FaultFixture {
  readonly fault: FaultText
  readonly account?: string
}

/** An entry of a fixtures file, with its position. */
export class FixtureEntry<Value> {
  readonly #document: FixturesDocument
  readonly #path: JsonPath

  constructor(
    document: FixturesDocument,
    path: JsonPath,
    /** Its key within its section. */
    readonly name: string,
    readonly value: Value,
  ) {
    this.#document = document
    this.#path = path
  }

  /** The file that contains it. */
  get file(): string {
    return this.#document.path
  }

  /** The same with another value. */
  with<Other>(value: Other): FixtureEntry<Other> {
    return new FixtureEntry(this.#document, this.#path, this.name, value)
  }

  /**
   * Returns the error that stops the start, with file, line and column.
   *
   * @param reason a sentence
   * @param inner path within the entry: `tier`, or `files` and a path
   */
  error(reason: string, ...inner: readonly (string | number)[]): StartupError {
    return this.#document.startupError(new ValidationError([...this.#path, ...inner], reason))
  }

  /**
   * Runs work for this entry. Turns what the API refuses into an error at the entry's position.
   *
   * @throws StartupError
   */
  async run<T>(work: () => T | Promise<T>, ...inner: readonly (string | number)[]): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof BerthError) throw this.error(error.message, ...inner)
      throw error
    }
  }
}
