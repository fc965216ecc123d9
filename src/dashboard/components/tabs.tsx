import { useEffect, useRef } from 'preact/hooks'

/** A tab, with an address of its own. */
export interface Tab {
  readonly href: string
  readonly label: string
  readonly count?: number | undefined
}

/** Links between the parts of a screen. In a narrow window the one that is shown is scrolled to. */
export function Tabs({ label, tabs, here }: { label: string; tabs: readonly Tab[]; here: string }) {
  const nav = useRef<HTMLElement>(null)
  useEffect(
    () =>
      nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }),
    [here],
  )
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {tabs.map(({ href, label: text, count }) => (
        <a key={href} href={href} aria-current={href === here ? 'page' : undefined}>
          {text}
          {count !== undefined && count > 0 && (
            <>
              {' '}
              <span class="count">{count}</span>
            </>
          )}
        </a>
      ))}
    </nav>
  )
}
