import { useId, useRef } from 'preact/hooks'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'

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
