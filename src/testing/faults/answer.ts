import { STATUS_CODES } from 'node:http'
import { ERROR_STATUS } from '../../errors.ts'
import type { FaultError } from './fault.ts'

/** Seconds after which whoever is refused for the moment may ask again. */
const RETRY_AFTER_S = 1

/** Statuses that refuse for the moment (RFC 9110, 15.6.4; RFC 6585, 4). */
const FOR_THE_MOMENT = [429, 503]

/** An answer as the API itself gives one for a failure. */
export function errorAnswer(error: FaultError, requestId: string, message: string): Response {
  const { status } = error
  const headers: Record<string, string> = { 'x-request-id': requestId }
  if (FOR_THE_MOMENT.includes(status)) headers['retry-after'] = String(RETRY_AFTER_S)
  const body = { error: error.code ?? codeOf(status), message: error.message ?? message }
  return Response.json(body, { status, headers })
}

/** The code that the API has for a status; for one that it never answers, HTTP's own name of it. */
export function codeOf(status: number): string {
  const [code] = Object.entries(ERROR_STATUS).find(([, known]) => known === status) ?? []
  return code ?? STATUS_CODES[status]?.toLowerCase().replace(/[^a-z]+/g, '_') ?? 'error'
}
