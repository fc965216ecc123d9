import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'
import { Button } from './button.tsx'

/** Properties of a dialog. */
export interface DialogProps {
  title: string
  onClose: () => void
  children: ComponentChildren
  /** Wide enough for code. */
  isWide?: boolean
}

/** A dialog above the page: the browser keeps the focus inside, and Escape closes it. */
export function Dialog({ title, onClose, children, isWide }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current
    const before = document.activeElement
    dialog?.showModal()
    // The browser closes a dialog that is removed. To close it here would tell the owner, who may show another by now.
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      class={isWide ? 'wide' : ''}
      aria-labelledby={id}
      onClose={onClose}
      // A click outside closes it too.
      closedby="any"
    >
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button look="quiet" icon="close" label="Close" onClick={onClose} />
      </div>
      {children}
    </dialog>
  )
}

/** Properties of a question before something is destroyed. */
interface ConfirmProps {
  title: string
  /** What is lost. */
  children: ComponentChildren
  /** What the button says: what it does. */
  action: string
  /** A text to type first, for what cannot be brought back. */
  typed?: string | undefined
  onConfirm: () => Promise<unknown>
  onClose: () => void
}

/** Asks before something is destroyed. */
export function Confirm({ title, children, action, typed, onConfirm, onClose }: ConfirmProps) {
  const { notices } = useDashboard()
  const [given, setGiven] = useState('')
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    if (await notices.attempt(onConfirm)) onClose()
    else setBusy(false)
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
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
        <div class="actions">
          <Button type="submit" look="danger" disabled={isBusy || (typed !== undefined && given !== typed)}>
            {action}
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}
