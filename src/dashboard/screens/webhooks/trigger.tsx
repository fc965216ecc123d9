import { useState } from 'preact/hooks'
import type { PartsOf } from '../../../client/client.ts'
import { EVENT_NAMES } from '../../../resources/events/names.ts'
import { messageOf } from '../../api/failure.ts'
import { CommandLines } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { FieldError, SelectField, TextField } from '../../components/field.tsx'
import { useDashboard } from '../../dashboard.ts'

type EventCreate = PartsOf<'control.events.emit'>['body']

/** Asks for an event, and emits it with the example of the documents or the data given. */
export function Trigger({ onClose }: { onClose: () => void }) {
  const { api, context } = useDashboard()
  const [event, setEvent] = useState<(typeof EVENT_NAMES)[number]>('task.completed')
  const [data, setData] = useState('')
  const bodyOf = (): EventCreate => ({
    event,
    account_id: context.account.id,
    ...(data.trim() !== '' && { data: parsed(data) }),
  })
  return (
    <FormDialog
      title="Send an event"
      action="Send"
      onSubmit={async () => api.call('control.events.emit', { body: bodyOf() })}
      onClose={onClose}
      commands={
        <CommandLines berth={`berth trigger ${event}`} method="POST" path="/_berth/events" body={{ event }} />
      }
    >
      <SelectField
        name="event"
        label="Event"
        value={event}
        onValue={(name) => setEvent(name as (typeof EVENT_NAMES)[number])}
        choices={EVENT_NAMES.map((name) => ({ value: name, label: name }))}
      />
      <TextField
        name="data"
        label="Data as JSON"
        hint="Empty: the example of the documents."
        rows={5}
        value={data}
        onValue={setData}
      />
    </FormDialog>
  )
}

/** Reads the JSON of a field. @throws FieldError if it is none */
function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch (error) {
    throw new FieldError('data', `This is not JSON: ${messageOf(error)}`)
  }
}
