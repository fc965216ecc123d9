import type { ApiClient } from '../../api/client.ts'
import { messageOf } from '../../api/failure.ts'
import type { Task } from '../../store/store.ts'
import type { Transcript } from './transcript.ts'

/** Milliseconds before a stream that was lost is opened again. */
const RETRY_MS = 2_000

/**
 * Reads the transcript of a task, and follows it until the task ends.
 *
 * @param onFailure called with why it cannot be read at present, and with null when it can
 * @returns a function that ends it
 */
export function followTask(
  api: ApiClient,
  { id: taskId, serverId }: Pick<Task, 'id' | 'serverId'>,
  transcript: Transcript,
  onFailure: (why: string | null) => void,
): () => void {
  const following = new AbortController()
  const { signal } = following
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        const query = { after: transcript.last }
        const events = api.stream('tasks.events', { params: { serverId, taskId }, query, signal })
        for await (const { data } of events) {
          transcript.add(data)
          onFailure(null)
        }
        // The stream of a task that is over ends.
        return
      } catch (error) {
        if (!signal.aborted) onFailure(messageOf(error))
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
  void run()
  return () => following.abort()
}
