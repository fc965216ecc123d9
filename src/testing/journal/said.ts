import { fieldsOf } from '../../runtime/is-object.ts'
import type { ShownBody } from './mask.ts'

/** What a response says in short, so that lists need no bodies. */
export interface SaidInShort {
  /** The code and the message of a failure (specification, "Errors"). */
  readonly error: string | null
  readonly message: string | null
  /** The server that the response names. */
  readonly server_id: string | null
  /** Ids of the objects that the request made. */
  readonly made: string[]
}

/** Returns what a response says in short; null if it says none of it. */
export function saidInShort(method: string, status: number, body: ShownBody): SaidInShort | null {
  const { error, message, server_id: serverId, ...rest } = fieldsOf(body)
  const isFailure = status >= 400
  const said = {
    error: isFailure ? textOf(error) : null,
    message: isFailure ? textOf(message) : null,
    server_id: textOf(serverId),
    made: method === 'GET' || method === 'HEAD' || status >= 300 ? [] : madeIn(rest),
  }
  return said.made.length > 0 || Object.values(said).some((one) => typeof one === 'string') ? said : null
}

const madeIn = ({ id, task_id: taskId, build_id: buildId, terminal }: Record<string, unknown>): string[] =>
  [id, taskId, buildId, fieldsOf(terminal).id].filter((one) => typeof one === 'string')

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
