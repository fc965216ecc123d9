import { codeOf, messageOf } from '../../runtime/error-info.ts'
/** The command could not be started; the message says why, for a person. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError'
}

/** Explains the system's refusal to start a process, for a person. */
export function spawnError(error: unknown): SpawnError {
  return new SpawnError(explain(error), { cause: error })
}

function explain(error: unknown): string {
  const code = codeOf(error)
  if (code === 'EAGAIN') {
    return 'No further process can be started: the server has as many as its limit allows. Stop some, or restart the server.'
  }
  if (code === 'ENOMEM') return 'No further process can be started: the server is out of memory.'
  if (code === 'EMFILE') return 'No further command can be started: the server has too many open.'
  return messageOf(error)
}
