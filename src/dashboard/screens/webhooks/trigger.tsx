import { useEffect, useMemo, useState } from 'preact/hooks'
import { EVENT_NAMES, type EventName } from '../../../resources/events/names.ts'
import { messageOf } from '../../api/failure.ts'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { Dialog, FormDialog } from '../../components/dialog.tsx'
import { FieldError, SelectField, TextField } from '../../components/field.tsx'
import { Failure, Loading } from '../../components/loaded.tsx'
import { useDashboard } from '../../dashboard.ts'
import { dataOf, eventFields } from './event-fields.ts'

type EventsDocument = Parameters<typeof eventFields>[0]

/** Asks for an event and for its data, by a form made of the event's schema, and emits it. */
export function Trigger({ onClose }: { onClose: () => void }) {
  const { api } = useDashboard()
  const [document, setDocument] = useState<EventsDocument | Error | null>(null)
  useEffect(() => {
    api
      .send({
        method: 'GET',
        path: '/openapi.json',
        body: undefined,
        form: undefined,
        bytes: undefined,
        signal: undefined,
      })
      .then((response) => response.json())
      .then(
        (json: EventsDocument) => setDocument(json),
        (error: unknown) => setDocument(new Error(messageOf(error))),
      )
  }, [api])
  if (document === null || document instanceof Error)
    return (
      <Dialog title="Send an event" onClose={onClose}>
        {document === null ? <Loading /> : <Failure error={document} />}
      </Dialog>
    )
  return <EventForm document={document} onClose={onClose} />
}

function EventForm({ document, onClose }: { document: EventsDocument; onClose: () => void }) {
  const { api, context, notices } = useDashboard()
  const [event, setEvent] = useState<EventName>('task.completed')
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const fields = useMemo(() => eventFields(document, event), [document, event])
  const data = shownData(fields, values)
  const body = { event, account_id: context.account.id, data }
  return (
    <FormDialog
      title="Send an event"
      action="Send"
      onSubmit={async () => {
        const { id } = await api.call('control.events.emit', {
          body: { ...body, data: dataOf(fields, values) },
        })
        notices.done(`${event} was emitted.`, { label: 'Show it', href: `/?q=${id}` })
      }}
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth trigger ${event} --payload ${quoted(JSON.stringify(data))}`}
          method="POST"
          path="/_berth/events"
          body={body}
        />
      }
    >
      <SelectField
        name="event"
        label="Event"
        value={event}
        onValue={(name) => {
          setEvent(name as EventName)
          setValues({})
        }}
        choices={EVENT_NAMES.map((name) => ({ value: name, label: name }))}
      />
      {fields.length === 0 && <p class="quiet">This event has no data of its own.</p>}
      {fields.map(({ name, kind, description, isRequired, isNullable, example }) => (
        <TextField
          key={`${event} ${name}`}
          name={name}
          label={name}
          hint={kind === 'list' ? `${description} One on each line.` : description}
          value={values[name] ?? example}
          onValue={(value) => setValues((before) => ({ ...before, [name]: value }))}
          isRequired={isRequired && !isNullable}
          {...(kind === 'list' && { rows: 3 })}
        />
      ))}
    </FormDialog>
  )
}

/** Returns the data as the lines for a terminal show it: a number that is none yet stays as it is typed. */
function shownData(...parts: Parameters<typeof dataOf>): Record<string, unknown> {
  try {
    return dataOf(...parts)
  } catch (error) {
    if (error instanceof FieldError) return { ...parts[1] }
    throw error
  }
}
