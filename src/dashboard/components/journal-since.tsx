import { useDashboard } from '../dashboard.ts'
import { TimeOfDay } from './time.tsx'

/** What emptied the journal of requests. */
const CAUSES = {
  start: 'kept since the start at',
  reset: 'emptied by the reset at',
  restore: 'emptied by the restore at',
  clear: 'cleared at',
} as const

/** Says why there are no requests from before, and since when. */
export function JournalSince() {
  const journal = useDashboard().health.value.value?.journal
  if (!journal) return null
  return (
    <span class="journal-since quiet">
      Requests {CAUSES[journal.begun_by]} <TimeOfDay at={Date.parse(journal.since)} />
    </span>
  )
}
