import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { useDashboard } from '../../dashboard.ts'
import { EFFECTS } from '../requests/effects.ts'
import { FaultList } from './fault-list.tsx'
import { SetFault } from './set-fault.tsx'

/** Returns the place of an effect among those of the dialog. */
const effectAt = (field: string, status?: number): number =>
  EFFECTS.findIndex(
    ({ effect }) =>
      field in effect &&
      (status === undefined ||
        ('error' in effect && effect.error.status === status) ||
        ('respond' in effect && effect.respond.status === status)),
  )

/** The faults that tests ask for most. */
const TEMPLATES = [
  { name: '429', index: effectAt('error', 429) },
  { name: '502 as HTML', index: effectAt('respond', 502) },
  { name: 'Slow', index: effectAt('delay_ms') },
  { name: 'Cut off', index: effectAt('truncate') },
  { name: 'Lost response', index: effectAt('lose_response') },
] as const

/** The faults that are set, with how often each has struck. */
export function Faults() {
  const { api, store } = useDashboard()
  const [begun, setBegun] = useState<number | null>(null)
  return (
    <Section
      title="Faults"
      actions={
        <>
          <Button icon="plus" onClick={() => setBegun(0)}>
            Set a fault
          </Button>
          {store.faults.list.value.length > 0 && (
            <Button
              look="danger"
              onClick={async () => {
                await api.call('control.faults.clear')
                await store.faults.load()
              }}
            >
              Remove all
            </Button>
          )}
        </>
      }
    >
      {begun !== null && <SetFault initial={begun} onClose={() => setBegun(null)} />}
      <p class="actions templates">
        {TEMPLATES.map(({ name, index }) => (
          <Button key={name} onClick={() => setBegun(index)}>
            {name}
          </Button>
        ))}
      </p>
      <Loaded of={store.faults}>
        {(faults) =>
          faults.length === 0 ? (
            <p class="quiet">
              None is set. Take one of these, or open a <a href="/dashboard/requests">request</a> and make a
              fault of it.
            </p>
          ) : (
            <FaultList faults={faults} />
          )
        }
      </Loaded>
    </Section>
  )
}
