import { Icon } from '../../components/icon.tsx'
import type { JournalRequest } from '../../store/store.ts'

/** Marks a request in a list: that something of it was not read, and that a fault struck it. */
export const RequestMarks = ({ request: { near_misses: misses, faults } }: { request: JournalRequest }) => (
  <>
    {misses.length > 0 && (
      <span class="miss" title={misses[0]?.message}>
        <Icon name="warning" />
        <span class="miss-words">near miss</span>
      </span>
    )}
    {faults.length > 0 && (
      <span class="chip" title={faultTitle(faults)}>
        fault
      </span>
    )}
  </>
)

/** Says whether the response of a request that faults struck is theirs. */
const faultTitle = (faults: JournalRequest['faults']): string =>
  faults.some(({ effect }) => 'error' in effect || 'respond' in effect)
    ? 'A fault gave this response.'
    : 'A fault struck this request.'
