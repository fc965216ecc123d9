import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Id } from '../../components/copy.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { Section } from '../../components/section.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Webhook } from '../../store/store.ts'
import { CreateWebhook } from './create-webhook.tsx'
import { Deliveries } from './deliveries.tsx'
import { Trigger } from './trigger.tsx'

/** The webhooks of the account, and for the instance's owner what was delivered to them. */
export default function Webhooks() {
  const { context, store } = useDashboard()
  const [asked, setAsked] = useState<'create' | 'trigger' | null>(null)
  return (
    <Page
      title="Webhooks"
      actions={
        <>
          {context.is_admin && <Button onClick={() => setAsked('trigger')}>Send an event …</Button>}
          <Button look="primary" icon="plus" onClick={() => setAsked('create')}>
            Subscribe
          </Button>
        </>
      }
    >
      <Loaded of={store.webhooks}>
        {(webhooks) =>
          webhooks.length === 0 ? (
            <Empty title="No webhooks yet">
              <p>
                A webhook is an address that berth sends signed events to. An inbox of berth's own will do.
              </p>
            </Empty>
          ) : (
            <ul class="cards">
              {webhooks.map((webhook) => (
                <WebhookCard key={webhook.id} webhook={webhook} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {context.is_admin && (
        <Section title="Deliveries">
          <Deliveries />
        </Section>
      )}
      {asked === 'create' && <CreateWebhook onClose={() => setAsked(null)} />}
      {asked === 'trigger' && <Trigger onClose={() => setAsked(null)} />}
    </Page>
  )
}

/** Most events of a webhook that are named in its card. */
const NAMED = 5

function WebhookCard({ webhook }: { webhook: Webhook }) {
  const { api, context, store } = useDashboard()
  const [isDeleting, setDeleting] = useState(false)
  const { id, url, events } = webhook
  return (
    <li class="card">
      <div class="card-main">
        <p>
          <strong>{url}</strong> <Id id={id} />
        </p>
        <p class="quiet">
          <span title={events.join(', ')}>
            {events.length > NAMED ? `${events.length} kinds of events` : events.join(', ')}
          </span>
          {context.is_admin && <SuccessRate webhookId={id} />}
        </p>
      </div>
      <Button look="danger" onClick={() => setDeleting(true)}>
        Delete
      </Button>
      {isDeleting && (
        <Confirm
          title="Delete the webhook?"
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.call('webhooks.delete', { params: { webhookId: id } })
            store.webhooks.remove(id)
          }}
        >
          <p>
            <code>{url}</code> gets no more events.
          </p>
        </Confirm>
      )}
    </li>
  )
}

/** How many of its deliveries have arrived. */
function SuccessRate({ webhookId }: { webhookId: string }) {
  const { store } = useDashboard()
  const all = store.deliveries.open().list.value.filter((one) => one.webhook_id === webhookId)
  if (all.length === 0) return null
  const arrived = all.filter(({ status }) => status === 'delivered').length
  return (
    <>
      {' '}
      · {arrived} of {all.length} delivered
    </>
  )
}
