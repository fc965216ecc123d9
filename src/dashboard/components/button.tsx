import type { ComponentChildren } from 'preact'
import { useId, useRef, useState } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'

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

/** An entry of a menu. */
export interface MenuItem {
  readonly label: string
  readonly icon?: IconName
  readonly isDangerous?: boolean
  readonly run: () => unknown
}

/** Pixels that an entry takes, and the frame around all (styles/controls.css). */
const ENTRY_HEIGHT = 32
const FRAME_HEIGHT = 10

/** A button that opens a list of actions. The browser closes it on Escape and on a click outside (popover). */
export function Menu({ label, items }: { label: string; items: readonly MenuItem[] }) {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const place = (button: HTMLElement): void => {
    const { top, bottom, right } = button.getBoundingClientRect()
    const height = items.length * ENTRY_HEIGHT + FRAME_HEIGHT
    // Above the button where there is no room below it.
    const fits = bottom + 4 + height <= innerHeight
    list.current?.style.setProperty('--menu-top', `${fits ? bottom + 4 : Math.max(8, top - 4 - height)}px`)
    list.current?.style.setProperty('--menu-right', `${Math.max(8, innerWidth - right)}px`)
  }
  const move = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const buttons = [...(list.current?.querySelectorAll('button') ?? [])]
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement)
    // Before the first arrow none has the focus.
    const next = at === -1 ? (step === 1 ? 0 : -1) : (at + step) % buttons.length
    buttons.at(next)?.focus()
  }
  return (
    <>
      <button
        type="button"
        class="button quiet square"
        aria-label={label}
        aria-haspopup="menu"
        title={label}
        popovertarget={id}
        onClick={({ currentTarget }) => place(currentTarget)}
      >
        <Icon name="more" />
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        class="menu"
        role="menu"
        aria-label={label}
        tabIndex={-1}
        onKeyDown={move}
        // Not the first action: a key that was meant for something else would start it.
        onToggle={(event) => event.newState === 'open' && list.current?.focus()}
      >
        {items.map(({ label: text, icon, isDangerous, run }) => (
          <MenuButton
            key={text}
            text={text}
            icon={icon}
            isDangerous={isDangerous}
            run={() => {
              list.current?.hidePopover()
              return run()
            }}
          />
        ))}
      </div>
    </>
  )
}

function MenuButton({
  text,
  icon,
  isDangerous,
  run,
}: {
  text: string
  icon: IconName | undefined
  isDangerous: boolean | undefined
  run: () => unknown
}) {
  return (
    <div role="none" class="menu-item">
      <Button role="menuitem" look={isDangerous ? 'danger' : 'quiet'} onClick={run} {...(icon && { icon })}>
        {text}
      </Button>
    </div>
  )
}

/** Paths of icons in a box of 16 by 16, drawn with a stroke. */
const PATHS = {
  timeline: 'M2 4h7M2 8h12M2 12h9',
  event: 'M9 1.8L3.5 9H8l-1 5.2L12.5 7H8z',
  requests: 'M5 13V3M2.2 5.8L5 3l2.8 2.8M11 3v10M8.2 10.2L11 13l2.8-2.8',
  servers: 'M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11zM5 4.75h.01M5 11.25h.01',
  projects: 'M2 4.5v8h12v-7H8L6.5 3.5H2z',
  tasks: 'M2.5 4l1.5 1.5L6.5 3M2.5 11l1.5 1.5L6.5 10M9 4.5h5M9 11.5h5',
  builds: 'M8 1.8l5.5 3v6.4L8 14.2l-5.5-3V4.8zM2.5 4.8L8 8l5.5-3.2M8 8v6.2',
  webhooks:
    'M8 5.5a2.2 2.2 0 1 0-2.2-2.2M6.8 5.1L4.4 9.4M4 13.2A2.2 2.2 0 1 1 4.6 9M6 11.4h5M12 9.2a2.2 2.2 0 1 1-1 4M9 5.2l2.4 4',
  inboxes: 'M2 9l2-6h8l2 6v4H2zM2 9h3.5l1 1.8h3L10.5 9H14',
  controls:
    'M2 4.5h6.5M12.5 4.5H14M12.5 4.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0zM2 11.5h1.5M7.5 11.5H14M7.5 11.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0z',
  access: 'M7.6 11a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0zM6.8 9L13.5 2.3M11.2 4.6l2 2M9 6.8l1.4 1.4',
  drawer: 'M2.5 2.5h11v11h-11zM2.5 9.5h11',
  usage: 'M3 13.5v-5M8 13.5v-11M13 13.5v-8',
  tools:
    'M10.2 5.8L3 13M13.9 4.6a3.2 3.2 0 0 1-4.4 3.9M13.9 4.6l-1.9 1.9-2.1-.6-.5-2 1.9-1.9a3.2 3.2 0 0 0-1.8 6.5',
  api: 'M5 4L1.8 8 5 12M11 4l3.2 4L11 12M9.2 2.8L6.8 13.2',
  guide: 'M3 2.5h8.5a1.5 1.5 0 0 1 1.5 1.5v9.5H4.5A1.5 1.5 0 0 1 3 12zM3 11.8a1.6 1.6 0 0 1 1.5-1.3H13',
  clock: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM8 4.5V8l2.4 1.6',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'M3 8.5l3.5 3.5L13 4.5',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  plus: 'M8 3v10M3 8h10',
  more: 'M3.7 8a.4.4 0 1 1-.8 0 .4.4 0 0 1 .8 0zM8.4 8a.4.4 0 1 1-.8 0 .4.4 0 0 1 .8 0zM13.1 8a.4.4 0 1 1-.8 0 .4.4 0 0 1 .8 0z',
  search: 'M7 11.5a4.5 4.5 0 1 1 0-9 4.5 4.5 0 0 1 0 9zM10.3 10.3L14 14',
  terminal: 'M2 3h12v10H2zM4.5 6l2 2-2 2M8 10.5h3',
  file: 'M4 1.8h5.5L12.5 5v9.2H4zM9.2 2v3.2h3.2',
  folder: 'M2 4v8.5h12V5.5H8L6.5 4z',
  open: 'M9 2.5h4.5V7M13.5 2.5L7.5 8.5M11.5 9v4.5h-9v-9H7',
  play: 'M4.5 2.8v10.4L13 8z',
  stop: 'M4 4h8v8H4z',
  restart: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3',
  pause: 'M5 3v10M11 3v10',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  warning: 'M8 2l6.5 11.5h-13zM8 6.5v3.2M8 11.6h.01',
  menu: 'M2 4h12M2 8h12M2 12h12',
  trash: 'M3 4.5h10M6 4.5V2.8h4v1.7M4.2 4.5l.6 9h6.4l.6-9',
  upload: 'M8 11V3M4.5 6.2L8 2.8l3.5 3.4M3 13.5h10',
  download: 'M8 2.8V11M4.5 7.6L8 11l3.5-3.4M3 13.5h10',
  signout: 'M6.5 2.5h-4v11h4M6 8h8M11 5l3 3-3 3',
} as const

/** The name of an icon. */
export type IconName = keyof typeof PATHS

/** A small picture beside a word. Screen readers skip it: the word, or the label of its button, says what it is. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
)
