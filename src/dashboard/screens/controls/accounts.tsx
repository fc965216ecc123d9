import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Id } from '../../components/copy.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { ShownOnce } from '../../components/shown-once.tsx'
import { useDashboard } from '../../dashboard.ts'

/** The accounts of the instance: tests that run side by side have one each. */
export function Accounts() {
  const { api, store } = useDashboard()
  const [key, setKey] = useState<string | null>(null)
  return (
    <Section
      title="Accounts"
      actions={
        <Button
          onClick={async () => {
            setKey((await api.call('control.accounts.create', { body: {} })).api_key)
            await store.accounts.load()
          }}
        >
          Create an account
        </Button>
      }
    >
      <Loaded of={store.accounts}>
        {(accounts) => (
          <ul class="cards">
            {accounts.map(({ id, label }) => (
              <li class="card" key={id}>
                <div class="card-main">
                  <p>
                    <strong>
                      <bdi>{label || 'without a label'}</bdi>
                    </strong>{' '}
                    <Id id={id} />
                  </p>
                </div>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {key !== null && (
        <ShownOnce
          title="The key of the account"
          about="It reaches the whole account, and is shown this once."
          text={key}
          onClose={() => setKey(null)}
        />
      )}
    </Section>
  )
}
