import type { Metering } from '../accounts/metering.ts'
import type { ServerLifecycle } from './lifecycle.ts'
import type { ServerRecords } from './records.ts'

/** What puts servers to sleep when a budget is used up. */
interface SleepAtCapParts {
  metering: Metering
  records: ServerRecords
  lifecycle: ServerLifecycle
}

/** From now on stops everything of an account that costs credits as soon as its budget is used up. */
export function sleepAtCap({ metering, records, lifecycle }: SleepAtCapParts): void {
  const sleep = async (accountId: string, id: string): Promise<void> => {
    const row = records.find(id)
    // The cap may have been raised, or another month begun, before the server's turn came.
    if (row && row.status !== 'sleeping' && metering.isCapped(accountId)) await lifecycle.stop(row)
  }
  metering.onCapReached(async (accountId) => {
    const ids = records.listByAccount(accountId).map(({ id }) => id)
    await Promise.all(ids.map((id) => lifecycle.turn(id, () => sleep(accountId, id))))
  })
}
