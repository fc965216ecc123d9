import { useEffect, useRef } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { useDashboard } from '../../dashboard.ts'
import { DRAWER_PARTS, type DrawerPart, LEAST_HEIGHT } from '../../store/drawer.ts'
import { ObjectPart } from './object-part.tsx'
import { RequestsPart } from './requests-part.tsx'
import { ShellPart } from './shell-part.tsx'
import { subjectAt } from './subject.ts'

const LABELS: Readonly<Record<DrawerPart, string>> = {
  requests: 'Requests',
  shell: 'Shell',
  object: 'Object',
}

/** Pixels by which a key changes the height. */
const STEP = 40

/**
 * What lies below every screen: the last requests about what it shows, a shell on its server, and the object itself. The
 * screen gives way to it, so that it covers nothing.
 */
export function DrawerSheet() {
  const dashboard = useDashboard()
  const { drawer, router, context, shortcuts } = dashboard
  const place = useRef<HTMLElement>(null)
  const height = drawer.height.value
  const path = router.path.value
  const address = drawer.about.value ?? `${path}?${router.query.value}`
  const subject = subjectAt(dashboard, address)
  const parts = DRAWER_PARTS.filter(
    (one) => (one !== 'requests' || context.is_admin) && (one !== 'object' || subject !== null),
  )
  const part = parts.find((one) => one === drawer.part.value) ?? parts[0]
  useEffect(() => {
    // What had the focus is still in view, though the screen is lower now.
    document.activeElement?.scrollIntoView({ block: 'nearest' })
    place.current?.querySelector<HTMLElement>('.drawer-tab[aria-pressed="true"]')?.focus()
    return shortcuts.add({ keys: 'Escape', label: 'Close the drawer', run: () => drawer.close() })
  }, [drawer, shortcuts])
  useEffect(() => {
    const { style } = document.documentElement
    style.setProperty('--drawer-height', `${height}px`)
    return () => void style.removeProperty('--drawer-height')
  }, [height])
  return (
    <section
      ref={place}
      class="drawer"
      aria-label="Drawer"
      style={{ height: `${height}px` }}
      onKeyDown={(event) => {
        const isTerminal = event.target instanceof Element && event.target.closest('.xterm') !== null
        if (event.key !== 'Escape' || isTerminal || document.querySelector(':popover-open')) return
        event.preventDefault()
        drawer.close()
      }}
    >
      <Edge />
      <div class="drawer-head">
        {parts.map((one) => (
          <button
            key={one}
            type="button"
            class="drawer-tab"
            aria-pressed={one === part}
            onClick={() => drawer.show(one)}
          >
            {LABELS[one]}
          </button>
        ))}
        {subject && (
          <span class="drawer-about quiet">
            {subject.kind} <bdi>{subject.name || subject.id}</bdi>
          </span>
        )}
        <Button look="quiet" icon="close" label="Close the drawer" onClick={() => drawer.close()} />
      </div>
      {part === 'requests' ? (
        <RequestsPart subject={subject} />
      ) : part === 'object' && subject ? (
        <ObjectPart subject={subject} />
      ) : (
        <ShellPart serverId={subject?.serverId ?? null} />
      )}
    </section>
  )
}

/** The upper edge, which makes the drawer higher or lower: drawn, or by the arrow keys. */
function Edge() {
  const { drawer } = useDashboard()
  return (
    <hr
      class="drawer-edge"
      tabIndex={0}
      aria-label="Height of the drawer"
      aria-valuenow={drawer.height.value}
      aria-valuemin={LEAST_HEIGHT}
      aria-valuemax={Math.round(innerHeight * 0.75)}
      onKeyDown={(event) => {
        const step = event.key === 'ArrowUp' ? STEP : event.key === 'ArrowDown' ? -STEP : 0
        if (step === 0) return
        event.preventDefault()
        drawer.resize(drawer.height.peek() + step)
      }}
      onPointerDown={({ currentTarget, pointerId }) => currentTarget.setPointerCapture(pointerId)}
      onPointerMove={({ currentTarget, pointerId, clientY }) => {
        if (currentTarget.hasPointerCapture(pointerId)) drawer.resize(innerHeight - clientY)
      }}
    />
  )
}
