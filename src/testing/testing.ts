/**
 * What only tests ask for, and the control API, `/_berth`. These parts are there from the start of an instance: faults
 * (`faults/`, which wrap compute, deliveries and requests), the journal (`journal/`) and snapshots (`snapshots/`).
 *
 * Others load on first use, and are doors of their own: `api/app.ts` serves the control API, `seed/read.ts` reads fixtures files
 * and berth.yaml, `seed/apply/apply.ts` applies them, `faults/gate.ts` applies faults to requests. `names.ts` is for the
 * command line and the dashboard. A new operation is a file of `api/` and its line in `api/groups.ts`.
 */
export type { ControlChangeMessage } from './api/changes.ts'
export type { Delivery } from './api/deliveries.ts'
export type { EmittedEvent } from './api/events.ts'
export type { Fault } from './api/faults.ts'
export type { CONTROL_GROUPS, ControlGroup } from './api/groups.ts'
export type * from './api/parts.ts'
export { FaultyCompute } from './faults/compute/compute.ts'
export { deliveryFaults } from './faults/deliveries.ts'
export { FaultStore } from './faults/store.ts'
export { Capture } from './journal/capture.ts'
export { JOURNAL_BYTES, RequestJournal, type StateCause } from './journal/journal.ts'
export type { Fixtures } from './seed/fixtures.ts'
export type { FixtureNames, FixturesRequest } from './seed/read.ts'
export type { StateDiff } from './snapshots/compare.ts'
export { type Snapshot, Snapshots, saveUndo } from './snapshots/snapshots.ts'
