import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Id } from '../../components/copy.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { ApiKey } from '../../store/store.ts'
import { CreateKey } from './create-key.tsx'

/** The API keys of the account. Programs and browsers stand on a page of their own, which works without a script. */
export default function Access() {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  return (
    <Page
      title="Access"
      actions={
        <Button look="primary" icon="plus" onClick={() => setCreating(true)}>
          Create a key
        </Button>
      }
    >
      <p class="quiet">
        Keys are for programs and the command line.{' '}
        <a href="/access">Programs, browsers and the text of keys</a> stand on their own page.
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
          Reaches <Reach apiKey={apiKey} />. Created <Time at={createdAt} />, used <Time at={lastUsedAt} />.
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

/** What a key reaches, in words. */
function Reach({ apiKey }: { apiKey: ApiKey }) {
  const { store } = useDashboard()
  const { allowed_server_ids: servers, allowed_project_ids: projects } = apiKey
  if (servers.length + projects.length === 0) return <>the whole account</>
  const names = [
    ...servers.map((id) => store.servers.open().get(id)?.task || id),
    ...projects.map((id) => store.projects.open().get(id)?.name ?? id),
  ]
  return (
    <>
      only <bdi>{names.join(', ')}</bdi>
    </>
  )
}
