import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button, Icon, NEW_KEY } from '../components/button.tsx'
import { Dialog } from '../components/dialog.tsx'
import { listKeys, selectedAddress } from '../components/list-keys.ts'
import { ErrorBoundary } from '../components/page.tsx'
import { useDashboard } from '../dashboard.ts'
import type { Drawer } from '../store/drawer.ts'
import type { ShortcutGroup } from '../store/shortcuts.ts'
import { Banners } from './banners.tsx'
import { Mark, Navigation, navigationFor } from './navigation.tsx'
import { Outlet } from './outlet.tsx'

/** The page around every screen: navigation, banners, notices. */
export function DashboardFrame() {
  const { context, drawer, router, shortcuts } = useDashboard()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const [isHelpOpen, setHelpOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  const path = router.path.value
  useEffect(() => {
    setMenuOpen(false)
    drawer.followScreen()
  }, [drawer, path])
  useEffect(() => {
    const jumps = navigationFor(context.is_admin, router.routes).flatMap((group) =>
      group.flatMap(({ keys, label, path, isOther }) =>
        keys === undefined
          ? []
          : [
              {
                keys,
                label,
                group: 'go' as const,
                run: () => (isOther ? location.assign(path) : router.go(path)),
              },
            ],
      ),
    )
    return shortcuts.add(
      { keys: '~', label: 'Open the drawer, or close it', group: 'page', run: () => toggle(drawer) },
      {
        keys: 'Ctrl+F6',
        label: 'Leave the terminal',
        isUsable: () => document.querySelector('.xterm') !== null,
      },
      { keys: '?', label: 'Show these keys', group: 'page', run: () => setHelpOpen(true) },
      {
        keys: '/',
        label: 'Search',
        isUsable: () => searchField(main.current) !== null,
        run: () => searchField(main.current)?.focus(),
      },
      {
        keys: NEW_KEY,
        label: 'Create one of what the screen lists',
        isUsable: () => newButton() !== null,
        run: () => newButton()?.click(),
      },
      ...listKeys(router),
      ...jumps,
    )
  }, [context, drawer, router, shortcuts])
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class={`sidebar${isMenuOpen ? ' open' : ''}`}>
        <div class="brand">
          <a class="name" href="/">
            <Mark />
            berth
          </a>
          <Connection />
          <span class="drawer-button">
            <Button
              look="quiet"
              icon="drawer"
              label="Drawer: requests, shell and object (~)"
              pressed={drawer.isOpen.value}
              onClick={() => toggle(drawer)}
            />
          </span>
          <span class="menu-button">
            <Button
              look="quiet"
              icon={isMenuOpen ? 'close' : 'menu'}
              label={isMenuOpen ? 'Close the menu' : 'Open the menu'}
              onClick={() => setMenuOpen(!isMenuOpen)}
            />
          </span>
        </div>
        <Navigation />
        <Account onHelp={() => setHelpOpen(true)} />
      </header>
      <div class="content">
        <Banners />
        <main id="main" ref={main}>
          <Outlet />
        </main>
        {drawer.isOpen.value && <LazyDrawer />}
      </div>
      <NoticeList />
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
    </>
  )
}

/** Opens the drawer about the selected row or the object on the screen, or closes it. */
function toggle(drawer: Drawer): void {
  if (drawer.isOpen.peek()) drawer.close()
  else drawer.open(selectedAddress())
}

/** Loads the drawer when it is first opened. */
function LazyDrawer() {
  const [Sheet, setSheet] = useState<ComponentType | null>(null)
  useEffect(() => {
    void import('./drawer.tsx').then(({ DrawerSheet }) => setSheet(() => DrawerSheet))
  }, [])
  return (
    Sheet && (
      <ErrorBoundary name="The drawer">
        <Sheet />
      </ErrorBoundary>
    )
  )
}

const searchField = (place: HTMLElement | null): HTMLInputElement | null =>
  place?.querySelector<HTMLInputElement>('input[type="search"]') ?? null

/** Returns the button that creates one of what the screen lists; null if there is none, or it is disabled. */
const newButton = (): HTMLButtonElement | null =>
  document.querySelector(`#main button[aria-keyshortcuts="${NEW_KEY}"]:not(:disabled)`)

/** Says whether the page is up to date. */
function Connection() {
  const { changes } = useDashboard()
  const state = changes.state.value
  const text = state === 'live' ? 'Live' : state === 'lost' ? 'Offline' : 'Connecting'
  return (
    <span class={`connection ${state}`} role="status">
      {text}
    </span>
  )
}

/** Whose instance this is, and the way out. */
function Account({ onHelp }: { onHelp: () => void }) {
  const { context } = useDashboard()
  const { account, base_url, csrf, version } = context
  return (
    <div class="account">
      <p>
        <span class="who" title={account.id}>
          {account.label || account.id}
        </span>
        <span class="quiet">{new URL(base_url).host}</span>
      </p>
      {context.is_first_account && !context.is_admin && (
        <p class="rights quiet">
          Requests and test controls need the instance's rights: run berth open, or open the link that berth
          open --print prints.
        </p>
      )}
      <div class="actions">
        <span class="quiet" title="The version of berth">
          {version}
        </span>
        <Button look="quiet" onClick={onHelp} label="Keys">
          ?
        </Button>
        <form method="post" action="/signout">
          <input type="hidden" name="csrf" value={csrf} />
          <button type="submit" class="button quiet square" aria-label="Sign out" title="Sign out">
            <Icon name="signout" />
          </button>
        </form>
      </div>
    </div>
  )
}

/** Shows the notices of successes and failures, in the corner. */
function NoticeList() {
  const { notices, router } = useDashboard()
  return (
    <ul class="notices" aria-live="polite">
      {notices.all.value.map(({ id, text, isFailure, action }) => (
        <li key={id} class={`notice${isFailure ? ' failure' : ''}`}>
          <p>{text}</p>
          {action && 'href' in action && action.href !== router.path.value && (
            <a href={action.href}>{action.label}</a>
          )}
          {action && 'run' in action && (
            <Button
              look="quiet"
              onClick={() => {
                notices.dismiss(id)
                action.run()
              }}
            >
              {action.label}
            </Button>
          )}
          <Button look="quiet" icon="close" label="Dismiss" onClick={() => notices.dismiss(id)} />
        </li>
      ))}
    </ul>
  )
}

/** The groups of keys, in order. */
const GROUPS: readonly { group: ShortcutGroup; title: string }[] = [
  { group: 'screen', title: 'On this screen' },
  { group: 'page', title: 'Everywhere' },
  { group: 'go', title: 'Go to' },
]

/** Symbols for keys that have no letter. */
const WRITTEN: Readonly<Record<string, string>> = { ArrowDown: '↓', ArrowUp: '↑', Escape: 'Esc' }

/** Lists the keys that work on this screen. */
function Help({ onClose }: { onClose: () => void }) {
  const { shortcuts } = useDashboard()
  const all = shortcuts.list()
  return (
    <Dialog title="Keys" onClose={onClose}>
      {GROUPS.map(({ group, title }) => {
        const listed = all.filter((one) => (one.group ?? 'screen') === group)
        if (listed.length === 0) return null
        return (
          <section key={group} class={`keys of-${group}`}>
            <h3>{title}</h3>
            <dl>
              {listed.map(({ keys, also, label }) => (
                <div key={keys}>
                  <dt>
                    {[...keys.split(' '), ...(also === undefined ? [] : [also])].map((key) => (
                      <kbd key={key}>{WRITTEN[key] ?? key}</kbd>
                    ))}
                  </dt>
                  <dd>{label}</dd>
                </div>
              ))}
            </dl>
          </section>
        )
      })}
    </Dialog>
  )
}
