import { Component, type ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { ApiFailure } from '../api/client.ts'
import { useDashboard } from '../dashboard.ts'
import type { Loadable } from '../store/collection.ts'
import { Button } from './button.tsx'

/** Properties of a screen's frame. */
interface PageProps {
  title: string
  /** Beside the title: the state, the id. */
  beside?: ComponentChildren
  /** Buttons at the end of the title's row. */
  actions?: ComponentChildren
  /** Links to the objects it belongs to. */
  above?: ComponentChildren
  children: ComponentChildren
  /** Takes the whole height of the window, for terminals and long lists that scroll by themselves. */
  isFull?: boolean
}

/** Characters of a title that a narrow window may cut. */
const LONG_TITLE = 80

/** A screen with its title, which becomes the window's. */
export function ScreenPage({ title, beside, actions, above, children, isFull }: PageProps) {
  const { router } = useDashboard()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // The link that led here is gone with its screen: the keyboard continues from here, and screen readers read the title.
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

/** A part of a screen with a heading of its own. */
export function Section({
  title,
  actions,
  children,
}: {
  title: string
  actions?: ComponentChildren
  children: ComponentChildren
}) {
  const id = useId()
  return (
    <section class="section" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
    </section>
  )
}

/** A tab, with an address of its own. */
interface Tab {
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

/** Shown in place of an empty list: its future content, and how to begin. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <h2>{title}</h2>
    {children}
  </div>
)

/** Shows a collection once it is loaded; until then that it loads, and if that failed, why. */
export function Loaded<Value>({
  of: collection,
  children,
}: {
  of: Loadable<Value>
  children: (list: readonly Value[]) => ComponentChildren
}) {
  const state = collection.open().state.value
  if (state instanceof Error) return <Failure error={state} retry={() => collection.load()} />
  if (state !== 'ready' && collection.list.value.length === 0) return <Loading />
  return <>{children(collection.list.value)}</>
}

/** Says that something loads, if that takes long enough to be noticed. */
export const Loading = () => (
  <p class="loading quiet" role="status">
    Loading …
  </p>
)

/** Shows a failure with its reason, and offers to try again. */
export const Failure = ({ error, retry }: { error: Error; retry?: () => unknown }) => (
  <div class="notice failure" role="alert">
    <p>{error.message}</p>
    {error instanceof ApiFailure && error.status > 0 && (
      <p class="quiet">
        {error.status} <code>{error.code}</code>
      </p>
    )}
    {retry && <Button onClick={retry}>Try again</Button>}
  </div>
)

/** Properties of an `ErrorBoundary`. */
interface ErrorBoundaryProps {
  /** What it contains, as the message names it: "This screen". */
  readonly name: string
  readonly children: ComponentChildren
}

/** Shows its content or, if drawing that fails, the error in its place. Everything around it stays usable. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { error: Error | null }> {
  override state = { error: null as Error | null }

  override componentDidCatch(error: unknown): void {
    console.error(error)
    this.setState({ error: error instanceof Error ? error : new Error(String(error)) })
  }

  render({ name, children }: ErrorBoundaryProps) {
    const { error } = this.state
    if (error === null) return children
    const failure = new Error(`${name} could not be drawn: ${error.message}`)
    // What it draws may be kept in memory.
    return <Failure error={failure} retry={() => location.reload()} />
  }
}
