import { Elysia, ParseError } from 'elysia'
import { ComputeError } from '../compute/driver.ts'
import { BerthError, badRequest } from '../errors.ts'
import { sentToken } from '../http/authentication.ts'
import { pathForLogs } from '../http/secret-path.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Database } from '../storage/database.ts'

/**
 * What a failure looks like in place of its body; null for its body.
 *
 * @param path that was asked for; the request's URL may be none, where its Host header is none
 */
export type FailurePage = (failure: BerthError, request: Request, path: string) => Response | null

/** Which methods a path answers to; empty for an unknown path. */
export type MethodsOf = (path: string) => string[]

/** Options of `errorAnswers`. */
export interface ErrorAnswersOptions {
  /** For paths that people's browsers go to, or programs that speak another protocol. */
  page?: FailurePage | undefined
  /** The database that requests work on. A failure after it was closed is a request that a reset has overtaken. */
  database: Pick<Database, 'closed'>
  /** Called for each request that fails. */
  onFailure?: (request: Request) => void
}

/**
 * The one place where a failure becomes an answer `{error, message}`. Mounted on the root before
 * anything else, so that it holds for every route and for paths that have none.
 *
 * @param methodsOf asked only when no route matched, to tell 404 from 405 (RFC 9110, 15.5.6)
 * @param directory where all paths are listed, as a sentence for whoever asked for one that is none
 */
export const errorAnswers = (
  logger: Logger,
  methodsOf: MethodsOf,
  directory: () => string,
  { page, database, onFailure }: ErrorAnswersOptions,
) =>
  new Elysia({ name: 'berth/errors' }).onError({ as: 'global' }, ({ error, code, path, request, set }) => {
    const failure =
      code === 'NOT_FOUND'
        ? unrouted(path, request.method, methodsOf(path), set.headers, directory)
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
    // Which scheme is wanted, and whether what came was none of ours (RFC 6750, 3).
    if (failure.status === 401) {
      const wrong = sentToken(request) ? ' error="invalid_token"' : ''
      set.headers['www-authenticate'] ??= `Bearer${wrong}`
    }
    onFailure?.(request)
    set.status = failure.status
    return page?.(failure, request, path) ?? failure.toBody()
  })

/** The methods of a path by the app's own routes; HEAD comes with GET. */
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
  path: string,
  method: string,
  known: string[],
  headers: Record<string, unknown>,
  directory: () => string,
): BerthError {
  if (known.length === 0) return new BerthError('not_found', `There is nothing at ${path}. ${directory()}`)
  headers.allow = known.join(', ')
  return new BerthError(
    'method_not_allowed',
    `${path} does not answer to ${method}, only to ${known.join(', ')}.`,
  )
}

function toBerthError(error: unknown, stateReplaced: boolean): BerthError {
  if (error instanceof BerthError) return error
  if (error instanceof ComputeError)
    return new BerthError('compute_backend_error', error.message, { cause: error })
  if (error instanceof ParseError) {
    // What is none of ours is a client that went away while it was sending.
    return error.cause instanceof BerthError
      ? error.cause
      : badRequest('The body could not be read to its end.')
  }
  const passing = passingFault(error, stateReplaced)
  if (passing !== null) return new BerthError('service_unavailable', passing, { cause: error })
  const message = isDiskFull(error)
    ? "The disk that holds berth's data folder is full. Free space there, then try again."
    : 'An unforeseen fault; the log tells more under this x-request-id.'
  return new BerthError('internal_error', message, { cause: error })
}

/** What keeps a request from being met that may be over when it is sent again, as a sentence; null for anything else. */
function passingFault(error: unknown, stateReplaced: boolean): string | null {
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && code.startsWith('SQLITE_BUSY')) {
    return "Another program holds berth's database, berth.db of the data folder, to write. End that, or wait until it is done, then try again."
  }
  return stateReplaced ? 'The state was replaced while this request was under way. Send it again.' : null
}

/** Whether SQLite, the system or a workspace says that there is no room. */
function isDiskFull(error: unknown): boolean {
  const { code, fault } = error as { code?: unknown; fault?: unknown }
  return code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT' || fault === 'disk_full'
}
