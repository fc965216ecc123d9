import { Elysia, ParseError } from 'elysia'
import { ComputeError } from '../compute/sandbox.ts'
import { BerthError, badRequest, UnknownPath } from '../errors.ts'
import { streamInstead } from '../http/accept.ts'
import { sentToken } from '../http/authentication.ts'
import { ACCEPTED_CODING } from '../http/request-checks.ts'
import { pathForLogs } from '../http/request-log.ts'
import { SPOKEN_VERSION } from '../http/web-socket.ts'
import { isDiskFull, MAKE_ROOM } from '../runtime/error-info.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Database } from '../storage/database.ts'
import { suggestOperations } from './near-paths.ts'
import type { OperationIndex } from './operations.ts'

/**
 * Returns a page in place of a failure's JSON body; null for the body.
 *
 * @param path requested path; the request's URL is invalid if its Host header is
 */
type FailurePage = (
  failure: BerthError,
  request: Request,
  path: string,
) => Response | null | Promise<Response>

/** Shows a page to a browser that opens a path which leads to nothing. */
const pageOfUnknownPath: FailurePage = (failure, { method, headers }) => {
  const isRead = method === 'GET' || method === 'HEAD'
  if (!(failure instanceof UnknownPath && isRead)) return null
  if (streamInstead(headers.get('accept'), ['text/html']) === null) return null
  // Most instances never show it.
  return import('../http/pages/unknown-path.ts').then(({ unknownPathPage }) => unknownPathPage())
}

/** Returns the methods of a path; none for an unknown path. */
type MethodsOf = (path: string) => string[]

/** Options of `errorAnswers`. */
interface ErrorAnswersOptions {
  /** The operations, of which a 404 and a 405 name those that may be meant. */
  operations?: () => OperationIndex
  /**
   * Renders failures of paths that browsers open, or that clients of another protocol call. By default a browser gets
   * a page for an unknown path only.
   */
  page?: FailurePage | undefined
  /** The database of the requests. If it is closed, a failed request was overtaken by a reset. */
  database: Pick<Database, 'closed'>
  /** Called for each request that fails. */
  onFailure?: (request: Request) => void
}

/**
 * Turns every failure into a response `{error, message}`. Mount it on the root before all other plugins: it then
 * covers every route and unknown paths.
 *
 * @param methodsOf called only if no route matches, to tell 404 from 405 (RFC 9110, section 15.5.6)
 * @param directory a sentence that says where all paths are listed, for a 404
 */
export const errorAnswers = (
  logger: Logger,
  methodsOf: MethodsOf,
  directory: () => string,
  { operations, page = pageOfUnknownPath, database, onFailure }: ErrorAnswersOptions,
) =>
  new Elysia({ name: 'berth/errors' }).onError(
    { as: 'global' },
    async ({ error, code, path, request, set }) => {
      const failure =
        code === 'NOT_FOUND'
          ? unrouted(
              { path, method: request.method, known: methodsOf(path) },
              set.headers,
              directory,
              operations,
            )
          : toBerthError(error, database.closed)
      if (failure.code === 'internal_error' || (failure.code === 'service_unavailable' && failure.cause)) {
        const requestId = set.headers['x-request-id']
        logger.error('request failed', {
          requestId,
          method: request.method,
          path: pathForLogs(path),
          error: failure.cause,
        })
      }
      // Names the scheme, and whether a credential was sent and is invalid (RFC 6750, section 3).
      if (failure.status === 401) {
        const wrong = sentToken(request) ? ' error="invalid_token"' : ''
        set.headers['www-authenticate'] ??= `Bearer${wrong}`
      }
      // Names what the connection has to become (RFC 9110, section 15.5.22).
      if (failure.status === 426) Object.assign(set.headers, { upgrade: 'websocket' }, SPOKEN_VERSION)
      if (failure.status === 415) Object.assign(set.headers, ACCEPTED_CODING)
      onFailure?.(request)
      set.status = failure.status
      return (await page(failure, request, path)) ?? failure.toBody()
    },
  )

/** Returns the methods of a path by the app's routes. GET implies HEAD. */
export function methodsByRoutes(routes: () => readonly { method: string; path: string }[]): MethodsOf {
  return (path) => {
    const given = segments(path)
    const known = routes()
      .filter((route) => matches(segments(route.path), given))
      .map((route) => route.method)
    return known.includes('GET') ? [...known, 'HEAD'] : known
  }
}

const segments = (path: string): string[] => path.split('/').slice(1)

const matches = (pattern: string[], given: string[]): boolean =>
  pattern.length === given.length &&
  pattern.every((part, index) => (part.startsWith(':') ? given[index] !== '' : part === given[index]))

function unrouted(
  { path, method, known }: { path: string; method: string; known: string[] },
  headers: Record<string, unknown>,
  directory: () => string,
  operations: (() => OperationIndex) | undefined,
): BerthError {
  const meant = operations && suggestOperations(method, path, operations())
  if (known.length === 0) return new UnknownPath(`There is nothing at ${path}. ${meant ?? directory()}`)
  headers.allow = known.join(', ')
  const refusal = `${path} does not answer to ${method}, only to ${known.join(', ')}.`
  return new BerthError('method_not_allowed', meant ? `${refusal} ${meant}` : refusal)
}

function toBerthError(error: unknown, stateReplaced: boolean): BerthError {
  if (error instanceof BerthError) return error
  if (error instanceof ComputeError)
    return new BerthError('compute_backend_error', error.message, { cause: error })
  if (error instanceof ParseError) {
    // Any other cause is a client that disconnected while it sent the body.
    return error.cause instanceof BerthError
      ? error.cause
      : badRequest('The body could not be read to its end.')
  }
  const temporary = temporaryFailure(error, stateReplaced)
  if (temporary !== null) return new BerthError('service_unavailable', temporary, { cause: error })
  const message = isDiskFull(error)
    ? `The disk that holds berth's data directory is full. ${MAKE_ROOM} Then try again.`
    : "An internal error; berth's log says more under this x-request-id."
  return new BerthError('internal_error', message, { cause: error })
}

/** Returns a sentence about a temporary failure, after which the request may be sent again; null for any other. */
function temporaryFailure(error: unknown, stateReplaced: boolean): string | null {
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && code.startsWith('SQLITE_BUSY')) {
    return "Another program holds berth's database, berth.db of the data directory, to write. End that, or wait until it is done, then try again."
  }
  return stateReplaced ? 'The state was replaced while this request was under way. Send it again.' : null
}
