import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { Id } from '../../components/copy.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { ShownOnce } from '../../components/shown-once.tsx'
import { useDashboard } from '../../dashboard.ts'

/** The accounts of the instance: tests that run side by side have one each. */
export function Accounts() {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  const [key, setKey] = useState<string | null>(null)
  return (
    <Section
      title="Accounts"
      actions={
        <Button icon="plus" onClick={() => setCreating(true)}>
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
      {isCreating && <CreateAccount onCreated={setKey} onClose={() => setCreating(false)} />}
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

/** Asks what an account is called, and creates it. */
function CreateAccount({ onCreated, onClose }: { onCreated: (key: string) => void; onClose: () => void }) {
  const { api, store } = useDashboard()
  const [label, setLabel] = useState('')
  const body = label === '' ? {} : { label }
  return (
    <FormDialog
      title="Create an account"
      action="Create"
      onSubmit={async () => {
        onCreated((await api.call('control.accounts.create', { body })).api_key)
        await store.accounts.load()
      }}
      onClose={onClose}
      commands={
        <CommandLines
          berth={`berth accounts create${label === '' ? '' : ` --label ${quoted(label)}`}`}
          method="POST"
          path="/_berth/accounts"
          body={body}
        />
      }
    >
      <TextField
        name="label"
        label="Label"
        value={label}
        onValue={setLabel}
        placeholder="worker 1"
        maxLength={100}
        hint="Tells the accounts apart."
      />
    </FormDialog>
  )
}
