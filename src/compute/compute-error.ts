import { ExplainedError } from '../errors.ts'

/** The compute backend failed through no fault of the caller. Becomes a 502 response with `compute_backend_error`. */
export class ComputeError extends ExplainedError {
  override readonly name = 'ComputeError'
}
