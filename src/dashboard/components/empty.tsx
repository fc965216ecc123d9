import type { ComponentChildren } from 'preact'

/** What a place shows that has nothing yet: what would be here, and how to begin. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <h2>{title}</h2>
    {children}
  </div>
)
