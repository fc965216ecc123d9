import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { ShownOnce } from '../../components/shown-once.tsx'
import { useDashboard } from '../../dashboard.ts'

/** Asks where to send events, subscribes the address and shows its secret. */
export function CreateWebhook({ onClose }: { onClose: () => void }) {
  const { api, context, notices, store } = useDashboard()
  const inbox = `${context.base_url}/_berth/inbox/events`
  const [url, setUrl] = useState(context.is_admin ? inbox : '')
  const [secret, setSecret] = useState<string | null>(null)
  const body = { url }
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
    <Dialog title="Subscribe to events" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void notices.attempt(create)
        }}
      >
        <label class="field">
          <span>Address</span>
          <input
            type="url"
            required
            value={url}
            onInput={({ currentTarget }) => setUrl(currentTarget.value)}
          />
        </label>
        {context.is_admin && (
          <p class="quiet">
            <code>{inbox}</code> is an <a href="/dashboard/inboxes">inbox</a> of this instance: it keeps what
            it gets.
          </p>
        )}
        <div class="actions">
          <Button type="submit" look="primary">
            Subscribe
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
        <CommandLines
          berth={`berth webhooks create ${quoted(url)}`}
          method="POST"
          path="/webhooks"
          body={body}
        />
      </form>
    </Dialog>
  )
}
