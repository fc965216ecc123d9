import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'

/** Properties of a screen's frame. */
interface PageProps {
  title: string
  /** Beside the title: the state, the id. */
  beside?: ComponentChildren
  /** Buttons at the end of the title's row. */
  actions?: ComponentChildren
  /** Links to what it belongs to. */
  above?: ComponentChildren
  children: ComponentChildren
  /** Takes the whole height of the window, for terminals and long lists that scroll by themselves. */
  isFull?: boolean
}

/** Characters of a title that a narrow window may cut. */
const LONG_TITLE = 80

/** A screen with its title, which becomes the window's. */
export function Page({ title, beside, actions, above, children, isFull }: PageProps) {
  const { router } = useDashboard()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // What led here is gone with its screen: the keyboard goes on from here, and screen readers tell where they are.
    if (router.hasMoved && document.activeElement === document.body)
      heading.current?.focus({ preventScroll: true })
  }, [router])
  useEffect(() => {
    document.title = `${title} · berth`
  }, [title])
  return (
    <div class={`page${isFull ? ' full' : ''}`}>
      <header class="page-head">
        {above && <p class="above">{above}</p>}
        <div class="title-row">
          <h1 ref={heading} tabIndex={-1} title={title.length > LONG_TITLE ? title : undefined}>
            {title}
          </h1>
          {beside && <div class="beside">{beside}</div>}
          {actions && <div class="actions">{actions}</div>}
        </div>
      </header>
      {children}
    </div>
  )
}
