import { useState } from 'preact/hooks'
import { CommandLines, quoted } from '../../components/command-lines.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/field.tsx'
import { ShownOnce } from '../../components/shown-once.tsx'
import { useDashboard } from '../../dashboard.ts'

/** Asks what a new key is for and what it reaches, creates it, and shows its text. */
export function CreateKey({ onClose }: { onClose: () => void }) {
  const { api, store } = useDashboard()
  const [label, setLabel] = useState('')
  const [isLimited, setLimited] = useState(false)
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set())
  const [text, setText] = useState<string | null>(null)
  const known = store.servers.open().list.value
  const servers = isLimited ? [...ticked] : []
  const body = { label, ...(isLimited && { allowed_server_ids: servers }) }
  // An empty list would mean everything, here and in the lines for a terminal.
  const isUnchosen = isLimited && servers.length === 0
  const create = async (): Promise<void> => {
    const { key, ...shown } = await api.call('keys.create', { body })
    store.keys.add(shown)
    setText(key)
  }
  if (text !== null)
    return (
      <ShownOnce
        title={`The key ${label}`}
        about="Whoever has it can do all that it reaches. Keep it out of code and chats."
        text={text}
        onClose={onClose}
      />
    )
  return (
    <FormDialog
      title="Create a key"
      action="Create"
      onSubmit={create}
      isDisabled={isUnchosen}
      staysOpen
      onClose={onClose}
      commands={
        !isUnchosen && (
          <CommandLines
            berth={`berth keys create ${quoted(label)}${servers.map((id) => ` --server ${id}`).join('')}`}
            method="POST"
            path="/keys"
            body={body}
          />
        )
      }
    >
      <TextField
        name="label"
        label="What is it for?"
        value={label}
        onValue={setLabel}
        isRequired
        maxLength={40}
        placeholder="CI"
      />
      <fieldset class="choice">
        <legend>What does it reach?</legend>
        <label>
          <input type="radio" name="reach" checked={!isLimited} onChange={() => setLimited(false)} />
          The whole account
        </label>
        <label>
          <input type="radio" name="reach" checked={isLimited} onChange={() => setLimited(true)} />
          Only some servers
        </label>
      </fieldset>
      {isLimited && (
        <fieldset class="choice">
          <legend>Servers that it reaches</legend>
          {known.length === 0 && <p class="quiet">There is no server yet.</p>}
          {known.map(({ id, task }) => (
            <label key={id}>
              <input
                type="checkbox"
                checked={ticked.has(id)}
                onChange={({ currentTarget }) => {
                  const next = new Set(ticked)
                  if (currentTarget.checked) next.add(id)
                  else next.delete(id)
                  setTicked(next)
                }}
              />
              <bdi>{task || id}</bdi>
            </label>
          ))}
        </fieldset>
      )}
    </FormDialog>
  )
}
