import { type TestBerth, testBerth } from '../berth.ts'
import { readEvents, type ServerEvent } from '../events.ts'
import type { ModelServer } from './server.ts'

/** A task under observation. */
export interface WatchedTask {
  readonly id: string
  /** What its event stream has brought so far. */
  readonly events: ServerEvent[]
  /** Resolves with the next event that `matches`, or one that came before. */
  event(type: string, matches?: (event: ServerEvent) => boolean): Promise<ServerEvent>
  /** Resolves with the task when its stream has ended. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  readonly done: Promise<any>
  /** The events of one type. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  of(type: string): any[]
}

/** A berth whose agent is behind a model server. */
export const berthWith = (model: ModelServer, flags: Record<string, unknown> = {}): Promise<TestBerth> =>
  testBerth({ flags: { ...model.flags, isolation: 'none', ...flags } })

/** Gives a goal to the agent of a server and watches what comes of it. */
export async function giveGoal(berth: TestBerth, serverId: string, goal: string): Promise<WatchedTask> {
  const path = `/servers/${serverId}/tasks`
  const { status, body } = await berth.call('POST', path, { goal })
  if (status !== 201) throw new Error(`no task: ${status} ${JSON.stringify(body)}`)
  const id: string = body.task_id
  const events: ServerEvent[] = []
  const watchers = new Set<() => void>()
  const response = await berth.fetch(`${path}/${id}/events`, { headers: { accept: 'text/event-stream' } })
  const done = (async () => {
    for await (const event of readEvents(response)) {
      events.push(event)
      for (const watcher of watchers) watcher()
    }
    const { body } = await berth.call('GET', `${path}/${id}`)
    return body.task
  })()
  return {
    id,
    events,
    done,
    of: (type) => events.filter(({ event }) => event === type).map(({ data }) => data),
    event(type, matches = () => true) {
      const { promise, resolve, reject } = Promise.withResolvers<ServerEvent>()
      const look = (): void => {
        const found = events.find((one) => one.event === type && matches(one))
        if (found) resolve(found)
      }
      watchers.add(look)
      look()
      done.then(() => reject(new Error(`there was no ${type}: ${JSON.stringify(events)}`)), reject)
      return promise.finally(() => watchers.delete(look))
    },
  }
}
