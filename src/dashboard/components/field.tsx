import { type ComponentChildren, createContext } from 'preact'
import { useContext, useId } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'

/** What is wrong with a field of a form. */
export class FieldError extends Error {
  override readonly name = 'FieldError'

  /** @param field the name of the field */
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message)
  }
}

/** The field of the form around that was refused; null if none was. */
export const RefusedField = createContext<FieldError | null>(null)

/** Properties that a control takes from its field: its name, and whether it was refused, for screen readers. */
interface ControlProps {
  id: string
  name: string
  'aria-invalid': boolean
  'aria-describedby': string | undefined
}

/** Properties of a field. */
interface FieldProps {
  /** As the API names it, so that its errors are found. */
  name: string
  label: string
  /** What helps to fill it. */
  hint?: ComponentChildren
}

/** A control with its label, and below it the error in its value. */
export function FormField({
  name,
  label,
  hint,
  children,
}: FieldProps & { children: (props: ControlProps) => ComponentChildren }) {
  const id = useId()
  const hintId = useId()
  const refused = useContext(RefusedField)
  const error = refused?.field === name ? refused.message : null
  const isDescribed = error !== null || hint !== undefined
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        name,
        'aria-invalid': error !== null,
        'aria-describedby': isDescribed ? hintId : undefined,
      })}
      {isDescribed && (
        <p id={hintId} class={error === null ? 'hint' : 'hint wrong'}>
          {error ?? hint}
        </p>
      )}
    </div>
  )
}

/** Properties of a field for text. */
interface TextFieldProps extends FieldProps {
  value: string
  onValue: (value: string) => void
  /** Lines of a longer text; without it the field has one line. */
  rows?: number
  isRequired?: boolean
  placeholder?: string
  maxLength?: number
}

/** A field for text. */
export const TextField = ({
  value,
  onValue,
  rows,
  isRequired = false,
  placeholder,
  maxLength,
  ...field
}: TextFieldProps) => (
  <FormField {...field}>
    {(control) => {
      const shared = { ...control, value, required: isRequired, placeholder, maxLength }
      return rows === undefined ? (
        <input
          {...shared}
          type="text"
          autocomplete="off"
          onInput={({ currentTarget }) => onValue(currentTarget.value)}
        />
      ) : (
        <textarea {...shared} rows={rows} onInput={({ currentTarget }) => onValue(currentTarget.value)} />
      )
    }}
  </FormField>
)

/** A field for one of a few values. */
export const SelectField = ({
  value,
  onValue,
  choices,
  ...field
}: FieldProps & {
  value: string
  onValue: (value: string) => void
  choices: readonly { readonly value: string; readonly label: string }[]
}) => (
  <FormField {...field}>
    {(control) => (
      <select {...control} value={value} onChange={({ currentTarget }) => onValue(currentTarget.value)}>
        {choices.map(({ value: one, label }) => (
          <option key={one} value={one}>
            {label}
          </option>
        ))}
      </select>
    )}
  </FormField>
)

/** Chooses one of the account's servers. Shows `children` if it has none. */
export function ServerField({
  value,
  onValue,
  children,
}: {
  /** Its id. */
  value: string
  onValue: (id: string) => void
  children?: ComponentChildren
}) {
  const { store } = useDashboard()
  const servers = store.servers.open().list.value
  if (servers.length === 0) return <>{children}</>
  return (
    <SelectField
      name="server"
      label="Server"
      value={value}
      onValue={onValue}
      choices={servers.map(({ id, task }) => ({ value: id, label: task || id }))}
    />
  )
}
