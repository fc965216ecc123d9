import { ComputeError } from '../sandbox.ts'

/** An engine refused a request. */
export class EngineRefusal extends ComputeError {
  /** @param status of the HTTP response @param message as the engine says it */
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** Reports whether an error is a refusal with one of some statuses of HTTP. */
export const isRefusal = (error: unknown, ...statuses: readonly number[]): error is EngineRefusal =>
  error instanceof EngineRefusal && statuses.includes(error.status)

/** Returns what a request comes to, null if the engine says that there is no such thing. */
export async function orMissing<T>(request: Promise<T>): Promise<T | null> {
  try {
    return await request
  } catch (error) {
    if (isRefusal(error, 404)) return null
    throw error
  }
}

/**
 * Does something on an engine, and explains a refusal.
 *
 * @param failed what is said of one, as "the engine could not …"
 * @param explain returns what follows that
 * @throws ComputeError
 */
export async function explained<T>(
  failed: string,
  explain: (refusal: EngineRefusal) => string,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error
    throw new ComputeError(failed + explain(error), { cause: error })
  }
}
