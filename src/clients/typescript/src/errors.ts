/** What is known of a request that failed. */
export interface ErrorDetails {
  /** HTTP status of the response; 0 if none arrived, or not whole. */
  readonly status: number
  /** The code in the field `error` of the response; null if the response is not berth's, or none arrived. */
  readonly code: string | null
  /** The id of the request, which berth's log repeats; null if the response has none. */
  readonly requestId: string | null
}

/** A request that failed. Its subclasses say how; an unknown code of a later berth is a plain `BerthError`. */
export class BerthError extends Error implements ErrorDetails {
  readonly status: number
  readonly code: string | null
  readonly requestId: string | null

  constructor(message: string, details: Partial<ErrorDetails> = {}, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.status = details.status ?? 0
    this.code = details.code ?? null
    this.requestId = details.requestId ?? null
  }
}

/** 400, 405, 415: the request is wrong; the message names the field. */
export class BadRequestError extends BerthError {}
/** 401: the credential is missing or invalid. */
export class AuthenticationError extends BerthError {}
/** 402: the budget of the account is used up. */
export class BudgetExceededError extends BerthError {}
/** 403 `forbidden`: the key may not do this. */
export class ForbiddenError extends BerthError {}
/** 403 `plan_limit`: the plan or the budget does not allow it. */
export class PlanLimitError extends BerthError {}
/** 404: it does not exist, or is out of the key's reach. */
export class NotFoundError extends BerthError {}
/** 413: the body is larger than 32 MiB. */
export class PayloadTooLargeError extends BerthError {}
/** 429: too many requests, and the time to wait is longer than the client waits by itself. */
export class TooManyRequestsError extends BerthError {}
/** 500: an internal error of berth; its log has the request id. */
export class InternalError extends BerthError {}
/** 502: the sandbox does not start, or does not take the command. */
export class ComputeBackendError extends BerthError {}
/** 503: berth stops or begins anew. */
export class UnavailableError extends BerthError {}
/** No response, or one that broke off: the connection was refused, closed or cut. `cause` is the error of `fetch`. */
export class ConnectionError extends BerthError {}

/** A project whose bring-up failed. */
export class ProjectFailedError extends BerthError {
  constructor(
    message: string,
    /** The id of the project. */
    readonly projectId: string,
    /** The phase that failed, such as `install`. */
    readonly phase: string | null,
    /** The end of its log, which the message has too. */
    readonly log: string,
  ) {
    super(message)
  }
}

/** A webhook that was not signed with the secret, or is too old. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

/** The class of each code. */
const CLASSES: Readonly<Record<string, typeof BerthError>> = {
  bad_request: BadRequestError,
  missing_or_invalid_api_key: AuthenticationError,
  budget_exceeded: BudgetExceededError,
  forbidden: ForbiddenError,
  plan_limit: PlanLimitError,
  not_found: NotFoundError,
  method_not_allowed: BadRequestError,
  payload_too_large: PayloadTooLargeError,
  unsupported_media_type: BadRequestError,
  upgrade_required: BadRequestError,
  too_many_requests: TooManyRequestsError,
  internal_error: InternalError,
  compute_backend_error: ComputeBackendError,
  service_unavailable: UnavailableError,
}

/**
 * Makes the error of a failed response.
 *
 * @param what the request, for the message of a response that is not berth's: `GET /servers`
 * @param body the text of the response
 */
export function errorOf(what: string, response: Response, body: string): BerthError {
  const details = { status: response.status, requestId: response.headers.get('x-request-id') }
  const { error: code, message } = parsed(body)
  if (typeof code === 'string' && typeof message === 'string')
    return new (CLASSES[code] ?? BerthError)(message, { ...details, code })
  const type = response.headers.get('content-type') ?? 'no content type'
  const beginning = body.trim().slice(0, 200)
  return new BerthError(
    `${what} got ${response.status} with a body (${type}) that is not berth's: ${beginning || 'empty'}`,
    details,
  )
}

/** Makes the error of an `error` event of a stream, whose data is the body of a failure. */
export function errorOfEvent(data: string, requestId: string | null): BerthError {
  const { error: code, message } = parsed(data)
  const known = typeof code === 'string' ? code : null
  return new ((known && CLASSES[known]) || BerthError)(
    typeof message === 'string' ? message : `The stream ended with an error: ${data}`,
    { code: known, requestId },
  )
}

function parsed(text: string): { error?: unknown; message?: unknown } {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
