import { UsageError } from '../../errors.ts'
import { EVENT_NAMES, type EventName } from '../../resources/events/names.ts'

/**
 * The events that are wanted: names with commas between them, `task.*` for all of a group; all where nothing is given.
 *
 * @throws UsageError for a name that is none
 */
export function readEvents(given: string | undefined): ReadonlySet<EventName> {
  const names = given?.split(',').flatMap((name) => name.trim() || [])
  if (names === undefined || names.length === 0) return new Set(EVENT_NAMES)
  return new Set(names.flatMap(named))
}

function named(given: string): EventName[] {
  const found = EVENT_NAMES.filter((name) =>
    given.endsWith('.*') ? name.startsWith(given.slice(0, -1)) : name === given,
  )
  if (found.length > 0) return found
  throw new UsageError(
    `There is no event ${JSON.stringify(given)}. The events are ${EVENT_NAMES.join(', ')}; task.* names all of a group.`,
  )
}
