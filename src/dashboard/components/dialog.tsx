import type { ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { messageOf } from '../../runtime/error-info.ts'
import { ApiFailure } from '../api/client.ts'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import { FieldError, RefusedField } from './field.tsx'

/** Properties of a dialog. */
interface DialogProps {
  title: string
  onClose: () => void
  children: ComponentChildren
  /** Wide enough for code. */
  isWide?: boolean
  /** Whether a click outside leaves it open, since closing would lose the typed text. */
  isKept?: boolean
}

/** A dialog above the page: the browser keeps the focus inside, and Escape closes it. */
export function Dialog({ title, onClose, children, isWide, isKept }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  const isGone = useRef(false)
  // At once: what is inside takes the focus after.
  useLayoutEffect(() => {
    const dialog = ref.current
    const before = document.activeElement
    dialog?.showModal()
    return () => {
      isGone.current = true
      // Else nothing behind it can have the focus yet.
      dialog?.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  // A removed dialog sends its event late: its owner may show another one by then.
  const notify = (): void => {
    if (!isGone.current) onClose()
  }
  return (
    <dialog
      ref={ref}
      class={isWide ? 'wide' : ''}
      aria-labelledby={id}
      // Escape, before the browser closes it: a key that follows at once is meant for the page below.
      onCancel={({ target, currentTarget }) => {
        if (target === currentTarget) notify()
      }}
      onClose={notify}
      closedby={isKept ? 'closerequest' : 'any'}
    >
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button look="quiet" icon="close" label="Close" onClick={onClose} />
      </div>
      {children}
    </dialog>
  )
}

/** Properties of a dialog with a form. */
interface FormDialogProps extends DialogProps {
  /** The text of the button: its action. */
  action: string
  /** Does it. The dialog then closes; if it fails, the dialog says why, at the field that was refused. */
  onSubmit: () => Promise<unknown>
  /** Whether something is missing that no field asks for. */
  isDisabled?: boolean
  isDangerous?: boolean
  /** Whether the owner shows something else in place of the form when it is done. */
  staysOpen?: boolean
  /** Below the buttons: the lines for a terminal. */
  commands?: ComponentChildren
}

/**
 * A dialog with a form: its fields, its action, and the way out. Ctrl+Enter sends one that has a field of several
 * lines.
 */
export function FormDialog({
  action,
  onSubmit,
  isDisabled,
  isDangerous,
  staysOpen,
  commands,
  children,
  ...dialog
}: FormDialogProps) {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    // Else the button that closes the dialog has it. Where there is nothing to fill, the way out has it.
    const place = form.current
    const field = place?.querySelector<HTMLElement>('input:not([type="radio"], [type="checkbox"]), textarea')
    const first = field ?? place?.querySelector<HTMLElement>('select, input, .actions button[type="button"]')
    first?.focus()
  }, [])
  const [hasLines, setHasLines] = useState(false)
  useLayoutEffect(() => setHasLines(form.current?.querySelector('textarea') != null))
  const isBlocked = isBusy || isDisabled
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setFailure(null)
    try {
      await onSubmit()
    } catch (error) {
      setBusy(false)
      const refused = fieldErrorOf(error, form.current)
      setFailure(refused ?? error)
      if (refused) controlOf(form.current, refused.field)?.focus()
      return
    }
    if (staysOpen) setBusy(false)
    else dialog.onClose()
  }
  const refused = failure instanceof FieldError ? failure : null
  return (
    <Dialog isKept {...dialog}>
      <form
        ref={form}
        onSubmit={(event) => void submit(event)}
        onKeyDown={(event) => {
          if (hasLines && !isBlocked && isSubmit(event)) {
            // Else the browser presses the button that has the focus, too.
            event.preventDefault()
            event.currentTarget.requestSubmit()
          }
        }}
      >
        <RefusedField.Provider value={refused}>{children}</RefusedField.Provider>
        {failure !== null && refused === null && (
          <p class="notice failure" role="alert">
            {messageOf(failure)}
          </p>
        )}
        <div class="actions">
          <Button
            type="submit"
            look={isDangerous ? 'danger' : 'primary'}
            disabled={isBlocked}
            title={hasLines ? submitKeysTitle() : undefined}
          >
            {action}
            {hasLines && <SubmitKeys />}
          </Button>
          <Button onClick={dialog.onClose}>Cancel</Button>
        </div>
        {commands}
      </form>
    </Dialog>
  )
}

/** Returns what is wrong with a field of a form, if a failure is about one: `"url" in the body: expected …`. */
function fieldErrorOf(error: unknown, form: HTMLFormElement | null): FieldError | null {
  if (error instanceof FieldError) return error
  const [, field = '', said = ''] =
    (error instanceof ApiFailure && /^"([^"]+)" in the body: (.+)$/s.exec(error.message)) || []
  if (controlOf(form, field) === null) return null
  return new FieldError(field, `${said[0]?.toUpperCase()}${said.slice(1)}`)
}

/** Returns the control of a field; null if the form has none. */
const controlOf = (form: HTMLFormElement | null, field: string): HTMLElement | null =>
  form?.querySelector<HTMLElement>(`[name="${CSS.escape(field)}"]`) ?? null

/** Properties of a question before something is destroyed. */
interface ConfirmProps {
  title: string
  /** What is lost. */
  children: ComponentChildren
  /** The text of the button: its action. */
  action: string
  /** A text to type first, before a loss that cannot be undone. */
  typed?: string | undefined
  onConfirm: () => Promise<unknown>
  onClose: () => void
  /** Below the buttons: the lines for a terminal. */
  commands?: ComponentChildren
}

/** Asks before something is destroyed. */
export function Confirm({ children, typed, onConfirm, ...dialog }: ConfirmProps) {
  const [given, setGiven] = useState('')
  return (
    <FormDialog
      {...dialog}
      isDangerous
      isDisabled={typed !== undefined && given !== typed}
      onSubmit={onConfirm}
    >
      {children}
      {typed !== undefined && (
        <label class="field">
          <span>
            Type <strong>{typed}</strong> to confirm
          </span>
          <input
            type="text"
            value={given}
            autocomplete="off"
            onInput={({ currentTarget }) => setGiven(currentTarget.value)}
          />
        </label>
      )}
    </FormDialog>
  )
}

/** Properties of a credential that is shown once. */
interface ShownOnceProps {
  title: string
  /** Its purpose, and how to keep it safe. */
  about: string
  /** The credential itself. */
  text: string
  onClose: () => void
}

/** Shows a credential that was just made, which no later response has. */
export const ShownOnce = ({ title, about, text, onClose }: ShownOnceProps) => (
  <Dialog title={title} onClose={onClose}>
    <p>{about}</p>
    <div class="line">
      <code>{text}</code>
      <CopyButton text={text} label="Copy it" />
    </div>
    <p class="actions">
      <Button look="primary" onClick={onClose}>
        Done
      </Button>
    </p>
  </Dialog>
)

/** Whether the keyboard is Apple's, which has Command where others have Control. */
const isApple = (): boolean => /Mac|iPhone|iPad/.test(navigator.platform)

/** Reports whether keys send a form with a field of several lines, in which Enter alone begins a new line. */
export const isSubmit = ({ key, ctrlKey, metaKey }: KeyboardEvent): boolean =>
  key === 'Enter' && (ctrlKey || metaKey)

/** Returns the keys that send a form, for the title of its button. */
export const submitKeysTitle = (): string => (isApple() ? 'Command+Enter' : 'Ctrl+Enter')

/** The keys that send a form, in its button. Screen readers read them from the button's title. */
export const SubmitKeys = () => (
  <span class="submit-keys" aria-hidden="true">
    {isApple() ? '⌘' : 'Ctrl'} ↵
  </span>
)
