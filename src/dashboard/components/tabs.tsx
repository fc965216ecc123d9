/** A tab, with an address of its own. */
export interface Tab {
  readonly href: string
  readonly label: string
  readonly count?: number | undefined
}

/** Links between the parts of a screen. */
export const Tabs = ({ label, tabs, here }: { label: string; tabs: readonly Tab[]; here: string }) => (
  <nav class="tabs" aria-label={label}>
    {tabs.map(({ href, label: text, count }) => (
      <a key={href} href={href} aria-current={href === here ? 'page' : undefined}>
        {text}
        {count !== undefined && count > 0 && <span class="count">{count}</span>}
      </a>
    ))}
  </nav>
)
