import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'
import { Icon, type IconName } from './icon.tsx'

/** What a button looks like: the main action of a place, an ordinary one, one that destroys, or an icon alone. */
type Look = 'primary' | 'plain' | 'danger' | 'quiet'

/** Properties of a button. */
interface ButtonProps {
  /** What it does. While a promise that it returns is pending, the button waits; its failure is shown. */
  onClick?: (() => unknown) | undefined
  look?: Look
  icon?: IconName
  /** Name for screen readers, and on hover, of a button without text. */
  label?: string
  /** What is shown on hover, beside the text. */
  title?: string | undefined
  disabled?: boolean | undefined
  type?: 'button' | 'submit'
  children?: ComponentChildren
  pressed?: boolean | undefined
  role?: 'menuitem'
  /** Whether it creates one of what the screen lists: the key `n` presses it. */
  isNew?: boolean
}

/** The key that presses the button which creates one of what the screen lists. */
export const NEW_KEY = 'n'

/** A button. */
export function Button({
  onClick,
  look = 'plain',
  icon,
  label,
  title = label,
  disabled,
  type = 'button',
  pressed,
  role,
  isNew = false,
  children,
}: ButtonProps) {
  const { notices } = useDashboard()
  const [isBusy, setBusy] = useState(false)
  const run = async (): Promise<void> => {
    const result = onClick?.()
    if (!(result instanceof Promise)) return
    setBusy(true)
    await notices.attempt(() => result)
    setBusy(false)
  }
  return (
    <button
      type={type}
      role={role}
      class={`button ${look}${children === undefined ? ' square' : ''}`}
      disabled={disabled || isBusy}
      aria-busy={isBusy}
      aria-label={label}
      aria-pressed={pressed}
      aria-keyshortcuts={isNew ? NEW_KEY : undefined}
      title={title}
      onClick={onClick && (() => void run())}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}
