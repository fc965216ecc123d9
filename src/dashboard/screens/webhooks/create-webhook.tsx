import { useState } from 'preact/hooks'
import { EVENT_NAMES, type EventName } from '../../../resources/events/names.ts'
import { Button } from '../../components/button.tsx'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { ShownOnce } from '../../components/shown-once.tsx'
import { useDashboard } from '../../dashboard.ts'

/** Says that the instance sends nothing to this machine, as long as that holds, and offers to change it. */
function AdmitLocal() {
  const { api, store } = useDashboard()
  const setting = store.localWebhooks.open().list.value[0]
  if (setting === undefined || setting.allowed) return null
  return (
    <div class="notice">
      <p>
        This instance sends events to public https addresses only, so it refuses this one.{' '}
        <code>berth serve --allow-local-webhooks</code> admits it from the start.
      </p>
      <Button
        onClick={async () => {
          await api.call('control.localWebhooks.update', { body: { allowed: true } })
          // The button is gone then, and the focus with it.
          document.querySelector<HTMLElement>('dialog input[name="url"]')?.focus()
          await store.localWebhooks.load()
        }}
      >
        Admit local webhooks until the next start
      </Button>
    </div>
  )
}

/** Reports whether a URL is of this machine, or not encrypted, which is for this machine only. */
function isOnThisMachine(text: string): boolean {
  const url = URL.parse(text)
  if (url === null) return false
  return url.protocol === 'http:' || /^(127\.[\d.]+|\[::1\]|(.+\.)?localhost)$/.test(url.hostname)
}

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
    store.webhooks.add({ ...webhook, disabled_at: null })
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
          context.is_admin ? (
            <>
              <code>{inbox}</code> is an <a href="/dashboard/inboxes">inbox</a> of this instance: it keeps
              what it gets. With <code>?respond=503,200</code> behind it, it refuses each event once.
            </>
          ) : (
            'A public https address, unless the instance admits others.'
          )
        }
      />
      {context.is_admin && isOnThisMachine(url) && <AdmitLocal />}
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
