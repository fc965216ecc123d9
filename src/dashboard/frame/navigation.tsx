import { Icon, type IconName } from '../components/button.tsx'
import { useDashboard } from '../dashboard.ts'
import type { ScreenRoute } from '../router.ts'

/** An entry of the navigation. */
interface Entry {
  readonly path: string
  readonly label: string
  readonly icon: IconName
  /** The keys that go there. */
  readonly keys?: string
  /** Whether only the instance's owner sees it. */
  readonly isAdmin?: boolean
  /** Leads to another page of berth. */
  readonly isOther?: boolean
}

/** The navigation, in groups. */
const NAVIGATION: readonly (readonly Entry[])[] = [
  [
    { path: '/', label: 'Timeline', icon: 'timeline', keys: 'g h' },
    { path: '/dashboard/requests', label: 'Requests', icon: 'requests', keys: 'g r', isAdmin: true },
  ],
  [
    { path: '/dashboard/servers', label: 'Servers', icon: 'servers', keys: 'g s' },
    { path: '/dashboard/projects', label: 'Projects', icon: 'projects', keys: 'g p' },
    { path: '/dashboard/tasks', label: 'Tasks', icon: 'tasks', keys: 'g t' },
    { path: '/dashboard/builds', label: 'Builds', icon: 'builds', keys: 'g b' },
  ],
  [
    { path: '/dashboard/webhooks', label: 'Webhooks', icon: 'webhooks', keys: 'g w' },
    { path: '/dashboard/inboxes', label: 'Inboxes', icon: 'inboxes', keys: 'g i', isAdmin: true },
    { path: '/dashboard/controls', label: 'Test controls', icon: 'controls', keys: 'g c', isAdmin: true },
  ],
  [
    { path: '/dashboard/access', label: 'Access', icon: 'access', keys: 'g a' },
    { path: '/dashboard/usage', label: 'Usage', icon: 'usage', keys: 'g u' },
    { path: '/dashboard/mcp', label: 'MCP tools', icon: 'tools', keys: 'g m' },
    { path: '/docs', label: 'API reference', icon: 'api', keys: 'g d', isOther: true },
    { path: '/docs/guide', label: 'Guide', icon: 'guide', keys: 'g e', isOther: true },
  ],
]

/** Returns the entries that have a screen and that the session may use. */
export const navigationFor = (isAdmin: boolean, routes: readonly ScreenRoute[]): Entry[][] =>
  NAVIGATION.map((group) =>
    group.filter(
      ({ path, isOther, isAdmin: needsAdmin }) =>
        (isAdmin || !needsAdmin) && (isOther || routes.some((route) => route.path === path)),
    ),
  ).filter((group) => group.length > 0)

/** The links to all screens. */
export function Navigation() {
  const { context, router } = useDashboard()
  const here = router.path.value
  return (
    <nav aria-label="Screens">
      {navigationFor(context.is_admin, router.routes).map((group) => (
        <ul key={group[0]?.path}>
          {group.map(({ path, label, icon }) => (
            <li key={path}>
              <a href={path} aria-current={isAt(here, path) ? 'page' : undefined}>
                <Icon name={icon} />
                {label}
              </a>
            </li>
          ))}
        </ul>
      ))}
    </nav>
  )
}

/** Reports whether a path is that of an entry, or of something below it. */
const isAt = (here: string, path: string): boolean =>
  here === path || (path !== '/' && here.startsWith(`${path}/`))

/** Berth's mark (http/pages/mark.svg) in the colours of the page. */
export const Mark = () => (
  <svg class="logo" viewBox="0 0 16 16" fill="none" aria-hidden="true">
    <path
      class="quay"
      d="M2.25 4.5v6.25a3 3 0 0 0 3 3h5.5a3 3 0 0 0 3-3V4.5"
      stroke-width="2"
      stroke-linecap="round"
    />
    <path
      class="boat"
      d="M8 .7c1.9 1.8 2.7 3.7 2.7 5.7 0 1.5-.15 2.6-.45 3.7a.9.9 0 0 1-.87.65H6.62a.9.9 0 0 1-.87-.65c-.3-1.1-.45-2.2-.45-3.7 0-2 .8-3.9 2.7-5.7Z"
    />
  </svg>
)
