import type { ComponentType } from 'preact'
import { Page } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ScreenProps } from '../../routing/route.ts'
import { Accounts } from './accounts.tsx'
import { ClockControl } from './clock-control.tsx'
import { Faults } from './faults.tsx'
import { Scenarios } from './scenarios.tsx'
import { Snapshots } from './snapshots.tsx'

/** A part of the screen. */
interface Part {
  /** The last segment of its address. */
  readonly tab: string
  readonly label: string
  readonly Content: ComponentType
}

/** The parts, in order. */
const PARTS: readonly Part[] = [
  { tab: 'faults', label: 'Faults', Content: Faults },
  { tab: 'clock', label: 'Clock', Content: ClockControl },
  { tab: 'state', label: 'State', Content: Snapshots },
  { tab: 'scenarios', label: 'Scenarios', Content: Scenarios },
  { tab: 'accounts', label: 'Accounts', Content: Accounts },
]

const BASE = '/dashboard/controls'

/** What tests steer: faults, the clock, snapshots of the whole state, scenarios and accounts, together or one of them. */
export default function Controls({ params: { tab = '' } }: ScreenProps) {
  const { store } = useDashboard()
  const faults = store.faults.open().list.value.length
  const chosen = PARTS.find((part) => part.tab === tab)
  return (
    <Page title="Test controls">
      <Tabs
        label="Test controls"
        here={chosen ? `${BASE}/${tab}` : BASE}
        tabs={[
          { href: BASE, label: 'All' },
          ...PARTS.map(({ tab: segment, label }) => ({
            href: `${BASE}/${segment}`,
            label,
            count: segment === 'faults' ? faults : undefined,
          })),
        ]}
      />
      <div class="controls">
        {(chosen ? [chosen] : PARTS).map(({ tab: segment, Content }) => (
          <Content key={segment} />
        ))}
      </div>
    </Page>
  )
}
