import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Id } from '../../components/copy.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { Section } from '../../components/section.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ApiKey } from '../../store/store.ts'
import { Browsers } from './browsers.tsx'
import { CreateKey } from './create-key.tsx'
import { Programs } from './programs.tsx'
import { Reach } from './reach.tsx'

/** All that has access to the account: API keys, programs and browsers. */
export default function Access() {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  return (
    <Page
      title="Access"
      actions={
        <Button isNew look="primary" icon="plus" onClick={() => setCreating(true)}>
          Create a key
        </Button>
      }
    >
      <Section title="API keys">
        <p class="quiet">
          For programs and the command line: <code>berth login</code> in a terminal adds one for it.{' '}
          <a href="/access">Show the text of a key</a> again.
        </p>
        <Loaded of={store.keys}>
          {(keys) =>
            keys.length === 0 ? (
              <Empty title="No keys yet" />
            ) : (
              <ul class="cards">
                {keys.map((key) => (
                  <KeyCard key={key.id} apiKey={key} />
                ))}
              </ul>
            )
          }
        </Loaded>
      </Section>
      <Programs />
      <Browsers />
      {isCreating && <CreateKey onClose={() => setCreating(false)} />}
    </Page>
  )
}

function KeyCard({ apiKey }: { apiKey: ApiKey }) {
  const { api, store } = useDashboard()
  const [isDeleting, setDeleting] = useState(false)
  const { id, label, masked, created_at: createdAt, last_used_at: lastUsedAt } = apiKey
  return (
    <li class="card">
      <div class="card-main">
        <p>
          <strong>
            <bdi>{label}</bdi>
          </strong>{' '}
          <code>{masked}</code> <Id id={id} />
        </p>
        <p class="quiet">
          Reaches <Reach of={apiKey} />. Created <Time at={createdAt} />, used <Time at={lastUsedAt} />.
        </p>
      </div>
      <Button look="danger" onClick={() => setDeleting(true)}>
        Delete
      </Button>
      {isDeleting && (
        <Confirm
          title={`Delete the key ${label}?`}
          action="Delete the key"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.call('keys.delete', { params: { keyId: id } })
            store.keys.remove(id)
          }}
        >
          <p>Programs that use it are refused from then on, and browsers that it signed in are signed out.</p>
        </Confirm>
      )}
    </li>
  )
}
