import { fieldsOf } from '../../runtime/is-object.ts'

/** A response that is no success, with what berth says of the cause and the remedy. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure'

  /**
   * @param status 0 if there was no response
   * @param code the machine-readable code (specification, "Errors")
   */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message)
  }
}

/** Returns the failure of a response. */
export async function failureOf(response: Response): Promise<ApiFailure> {
  const body: unknown = await response.json().catch(() => null)
  const { error, message } = fieldsOf(body)
  return new ApiFailure(
    response.status,
    typeof error === 'string' ? error : 'unknown',
    typeof message === 'string' ? message : `The response was ${response.status}.`,
  )
}

/** Returns a sentence for a person about anything that was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
