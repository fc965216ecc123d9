import { useState } from 'preact/hooks'
import { EVENT_NAMES, type EventName } from '../../../resources/events/names.ts'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { ShownOnce } from '../../components/shown-once.tsx'
import { useDashboard } from '../../dashboard.ts'

/** Asks where to send events, subscribes the address and shows its secret. */
export function CreateWebhook({ onClose }: { onClose: () => void }) {
  const { api, context, store } = useDashboard()
  const inbox = `${context.base_url}/_berth/inbox/events`
  const [url, setUrl] = useState(context.is_admin ? inbox : '')
  const [secret, setSecret] = useState<string | null>(null)
  const [events, setEvents] = useState<ReadonlySet<EventName>>(new Set())
  const names = EVENT_NAMES.filter((name) => events.has(name))
  const body = { url, ...(names.length > 0 && { events: names }) }
  const create = async (): Promise<void> => {
    const { secret: text, ...webhook } = await api.call('webhooks.create', { body })
    store.webhooks.add(webhook)
    setSecret(text)
  }
  if (secret !== null)
    return (
      <ShownOnce
        title="The webhook's secret"
        about="Receivers check signatures with it. It is shown this once."
        text={secret}
        onClose={onClose}
      />
    )
  return (
    <FormDialog
      title="Subscribe to events"
      action="Subscribe"
      onSubmit={create}
      staysOpen
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth webhooks create ${quoted(url)}${names.length > 0 ? ` --events ${names}` : ''}`}
          method="POST"
          path="/webhooks"
          body={body}
        />
      }
    >
      <TextField
        name="url"
        label="Address"
        value={url}
        onValue={setUrl}
        isRequired
        hint={
          context.is_admin && (
            <>
              <code>{inbox}</code> is an <a href="/dashboard/inboxes">inbox</a> of this instance: it keeps
              what it gets. With <code>?respond=503,200</code> behind it, it refuses each event once.
            </>
          )
        }
      />
      <fieldset class="choice">
        <legend>Events: all, if none is ticked</legend>
        {EVENT_NAMES.map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={events.has(name)}
              onChange={({ currentTarget }) => {
                const next = new Set(events)
                if (currentTarget.checked) next.add(name)
                else next.delete(name)
                setEvents(next)
              }}
            />
            {name}
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}
