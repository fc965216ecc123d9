/**
 * The control API, `/_berth`, and the parts of berth that only tests ask for. This door has those that a start needs:
 * faults (`faults/`, which wrap compute, deliveries and requests), the journal (`journal/`; how many requests it keeps
 * is an option of src/config) and snapshots (`snapshots/`).
 *
 * What it has by `load…` loads on first use: `api/app.ts` serves the control API, `seed/apply/apply.ts` applies fixtures,
 * `faults/gate.ts` applies faults to requests, `report/record.ts` records a run. Doors of their own, for the command line
 * and the dashboard, are `seed/read.ts` (reads fixtures files and berth.yaml), `report/directory.ts` (the files of the
 * report of a run), `journal/har.ts` (requests as an archive) and `names.ts` (constants that they share with this room).
 *
 * To add an operation, give it an id in `src/contract/operations.ts` and a route in the file of its group in `api/`
 * (those of inboxes and waits are in `inbox/` and `wait/`). A new group is a line in `api/groups.ts`.
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
export type { WholeEntry } from './journal/shown.ts'
export type { RunRecord } from './report/record.ts'
export type { RecordedObject } from './report/recorded-state.ts'
export type { Fixtures } from './seed/fixtures.ts'
export type { FixtureNames, FixturesRequest } from './seed/read.ts'
export type { StateDiff } from './snapshots/compare.ts'
export { type Snapshot, Snapshots, saveUndo } from './snapshots/snapshots.ts'

/** Loads what serves the control API and describes it. */
export const loadControlApi = () => import('./api/app.ts')

/** Loads what applies faults to requests. */
export const loadFaultGate = () => import('./faults/gate.ts')

/** Loads what applies fixtures to an instance. */
export const loadApplyFixtures = () => import('./seed/apply/apply.ts')

/** Loads what records a run for its report. */
export const loadRunRecord = () => import('./report/record.ts')
