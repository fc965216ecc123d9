import { useState } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'
import { Button } from './button.tsx'
import { Confirm } from './dialog.tsx'
import { CommandLines } from './http.tsx'

/** The owner of a variable, for the command line and for the API. */
interface VariableOwner {
  /** The option of the command line that names the owner: `--server srv_…` or `--project SLUG`. */
  option: string
  path: string
  /** Fields of the request's body beside `secrets`. */
  body?: Readonly<Record<string, string>>
}

/** Properties of a form for a variable. */
interface VariableFormProps extends VariableOwner {
  /** The name as it is typed. */
  name: string
  onName: (name: string) => void
  /** The names that are set already. */
  names: readonly string[]
  /** Sets the variable. */
  onSet: (name: string, value: string) => Promise<unknown>
}

/** Asks for the name and the value of an environment variable, and sets it. */
export function VariableForm({ name, onName, names, onSet, option, path, body }: VariableFormProps) {
  const { notices } = useDashboard()
  const [value, setValue] = useState('')
  return (
    <>
      <form
        class="pair"
        onSubmit={(event) => {
          event.preventDefault()
          void notices.attempt(async () => {
            await onSet(name, value)
            onName('')
            setValue('')
          })
        }}
      >
        <label class="field">
          <span>Name</span>
          <input
            type="text"
            required
            value={name}
            pattern="[A-Za-z_][A-Za-z0-9_]*"
            title="Letters, digits and _, not beginning with a digit"
            placeholder="API_KEY"
            autocomplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) => onName(currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Value</span>
          <input
            type="password"
            autocomplete="off"
            value={value}
            onInput={({ currentTarget }) => setValue(currentTarget.value)}
          />
        </label>
        <Button type="submit" look="primary">
          {names.includes(name) ? 'Replace' : 'Set'}
        </Button>
      </form>
      <CommandLines
        berth={`berth secrets set ${name || 'NAME'} ${option}`}
        method="PUT"
        path={path}
        body={{ ...body, secrets: { [name || 'NAME']: '…' } }}
      />
    </>
  )
}

/** Properties of the question before a variable is removed. */
interface RemoveVariableProps extends VariableOwner {
  name: string
  /** Removes the variable. */
  onRemove: () => Promise<unknown>
  onClose: () => void
  /** What the removal does to apps, a sentence. */
  children: string
}

/** Asks whether a variable is to be removed, and removes it. */
export const RemoveVariable = ({
  name,
  onRemove,
  onClose,
  option,
  path,
  body,
  children,
}: RemoveVariableProps) => (
  <Confirm
    title={`Remove ${name}?`}
    action="Remove it"
    onClose={onClose}
    onConfirm={onRemove}
    commands={
      <CommandLines
        berth={`berth secrets unset ${name} ${option}`}
        method="PUT"
        path={path}
        body={{ ...body, secrets: { [name]: null } }}
      />
    }
  >
    <p>{children}</p>
  </Confirm>
)
