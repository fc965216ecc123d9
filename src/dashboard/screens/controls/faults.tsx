import { Button } from '../../components/button.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { useDashboard } from '../../dashboard.ts'
import { FaultList } from './fault-list.tsx'

/** The faults that are set, with how often each has struck. */
export function Faults() {
  const { api, store } = useDashboard()
  return (
    <Section
      title="Faults"
      actions={
        store.faults.list.value.length > 0 && (
          <Button
            look="danger"
            onClick={async () => {
              await api.call('control.faults.clear')
              await store.faults.load()
            }}
          >
            Remove all
          </Button>
        )
      }
    >
      <Loaded of={store.faults}>
        {(faults) =>
          faults.length === 0 ? (
            <p class="quiet">
              None is set. Open a <a href="/dashboard/requests">request</a> and make a fault of it, or use{' '}
              <code>berth faults add</code>.
            </p>
          ) : (
            <FaultList faults={faults} />
          )
        }
      </Loaded>
    </Section>
  )
}
