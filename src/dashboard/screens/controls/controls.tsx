import { Page } from '../../components/page.tsx'
import { Accounts } from './accounts.tsx'
import { ClockControl } from './clock-control.tsx'
import { Faults } from './faults.tsx'
import { Scenarios } from './scenarios.tsx'
import { Snapshots } from './snapshots.tsx'

/** What tests steer: faults, the clock, snapshots of the whole state, scenarios and accounts. */
export default function Controls() {
  return (
    <Page title="Test controls">
      <div class="controls">
        <Faults />
        <ClockControl />
        <Snapshots />
        <Scenarios />
        <Accounts />
      </div>
    </Page>
  )
}
