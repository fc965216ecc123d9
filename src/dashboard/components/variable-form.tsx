import { useState } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'
import { Button } from './button.tsx'
import { CommandLines } from './command-lines.tsx'

/** Properties of a form for a variable. */
interface VariableFormProps {
  /** The name as it is typed. */
  name: string
  onName: (name: string) => void
  /** The names that are set already. */
  names: readonly string[]
  /** Sets the variable. */
  onSet: (name: string, value: string) => Promise<unknown>
  /** The option of the command line that names the owner: `--server srv_…` or `--project SLUG`. */
  option: string
  path: string
  /** Fields of the request's body beside `secrets`. */
  body?: Readonly<Record<string, string>>
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
