import { useState } from 'preact/hooks'
import type { PartsOf } from '../../../client/client.ts'
import { EVENT_NAMES } from '../../../resources/events/names.ts'
import { Button } from '../../components/button.tsx'
import { CommandLines } from '../../components/command-lines.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { useDashboard } from '../../dashboard.ts'

type EventCreate = PartsOf<'control.events.emit'>['body']

/** Asks for an event, and emits it with the example of the documents or the data given. */
export function Trigger({ onClose }: { onClose: () => void }) {
  const { api, context, notices } = useDashboard()
  const [event, setEvent] = useState<(typeof EVENT_NAMES)[number]>('task.completed')
  const [data, setData] = useState('')
  const bodyOf = (): EventCreate => ({
    event,
    account_id: context.account.id,
    ...(data.trim() !== '' && { data: JSON.parse(data) as Record<string, unknown> }),
  })
  return (
    <Dialog title="Send an event" onClose={onClose}>
      <form
        onSubmit={(submitted) => {
          submitted.preventDefault()
          void notices
            .attempt(() => api.call('control.events.emit', { body: bodyOf() }))
            .then((ok) => ok && onClose())
        }}
      >
        <label class="field">
          <span>Event</span>
          <select
            value={event}
            onChange={({ currentTarget }) => setEvent(currentTarget.value as (typeof EVENT_NAMES)[number])}
          >
            {EVENT_NAMES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Data as JSON; the example of the documents where it is empty</span>
          <textarea rows={5} value={data} onInput={({ currentTarget }) => setData(currentTarget.value)} />
        </label>
        <div class="actions">
          <Button type="submit" look="primary">
            Send
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
        <CommandLines berth={`berth trigger ${event}`} method="POST" path="/_berth/events" body={{ event }} />
      </form>
    </Dialog>
  )
}
