import type { ApiClient } from '../../api/client.ts'
import { followStream } from '../../api/follow.ts'
import type { Task } from '../../store/store.ts'
import type { Transcript } from './transcript.ts'

/**
 * Reads the transcript of a task, and follows it until the task ends.
 *
 * @param onFailure called with why it cannot be read at present, and with null when it can
 * @returns a function that ends it
 */
export const followTask = (
  api: ApiClient,
  { id: taskId, serverId }: Pick<Task, 'id' | 'serverId'>,
  transcript: Transcript,
  onFailure: (why: string | null) => void,
): (() => void) =>
  followStream(async (signal) => {
    const query = { after: transcript.last }
    for await (const { data } of api.stream('tasks.events', {
      params: { serverId, taskId },
      query,
      signal,
    })) {
      transcript.add(data)
      onFailure(null)
    }
  }, onFailure)
