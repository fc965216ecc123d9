/**
 * The closed registry of failures a caller can see: machine-readable code → HTTP status.
 * The first block is the specification's own table (api.md, "Errors"); the second completes HTTP.
 */
export const ERROR_STATUS = {
  bad_request: 400,
  missing_or_invalid_api_key: 401,
  budget_exceeded: 402,
  forbidden: 403,
  plan_limit: 403,
  not_found: 404,
  compute_backend_error: 502,

  method_not_allowed: 405,
  payload_too_large: 413,
  unsupported_media_type: 415,
  upgrade_required: 426,
  too_many_requests: 429,
  internal_error: 500,
  service_unavailable: 503,
} as const

/** A code of the registry, as in the `error` field of a response. */
export type ErrorCode = keyof typeof ERROR_STATUS

/** The body of every failure: `{error, message}`. */
export interface ErrorBody {
  error: ErrorCode
  message: string
}

/**
 * An error whose message is for a person: the cause and, if there is one, the remedy. Of any other, which is internal, only
 * berth's own log has the message.
 */
export class ExplainedError extends Error {
  /** The message without what a log has already. */
  get summary(): string {
    return this.message
  }
}

/** Returns what a person reads of an error; null for an internal one. */
export const explanationOf = (error: unknown): string | null =>
  error instanceof ExplainedError ? error.summary : null

/**
 * A failure with a code of the registry and a sentence for a person. Domain code throws it;
 * only `contract/error-response.ts` turns it into a response.
 */
export class BerthError extends ExplainedError {
  override readonly name = 'BerthError'

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }

  /** The HTTP status that belongs to the code. */
  get status(): number {
    return ERROR_STATUS[this.code]
  }

  /** The response's body. */
  toBody(): ErrorBody {
    return { error: this.code, message: this.message }
  }
}

/** A 404: no operation and no page has the path. Browsers get a page, programs the body of every failure. */
export class UnknownPath extends BerthError {
  constructor(message: string) {
    super('not_found', message)
  }
}

/** A 400: the caller's input is at fault; the message names the field and what was expected. */
export const badRequest = (message: string): BerthError => new BerthError('bad_request', message)

/** A 404: no such resource, or none that this key can see. */
export const notFound = (what: string): BerthError => new BerthError('not_found', `${what} does not exist.`)

/**
 * A start that cannot go on (port taken, directory in use, unreadable config): one sentence with the
 * cause and the remedy, printed without a stack; the process exits with 1.
 */
export class StartupError extends Error {
  override readonly name = 'StartupError'
}

/** Wrong usage of the command line or of an option's value: the process exits with 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
