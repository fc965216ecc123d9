import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { ChangeStream, type LiveChange } from './api/changes.ts'
import { ApiClient } from './api/client.ts'
import { type PageContext, Session } from './api/session.ts'
import { type Address, Router, type ScreenRoute } from './router.ts'
import { PageClock } from './store/clock.ts'
import { CommandRuns } from './store/commands.ts'
import { Drawer } from './store/drawer.ts'
import { FileWork } from './store/file-work.ts'
import { Health } from './store/health.ts'
import { UsageStream } from './store/live-usage.ts'
import { Notices } from './store/notices.ts'
import { Shortcuts } from './store/shortcuts.ts'
import { Steps } from './store/steps.ts'
import { Store } from './store/store.ts'

/** What was recorded of an instance that is over. */
export interface Recording {
  /** Responds to calls with what was recorded. */
  readonly api: ApiClient
  readonly address: Address
  /** Returns the time of the change that is replayed, in milliseconds since 1970. */
  readonly now: () => number
  /** Returns an object as it was before a change; undefined if it was not there. */
  readonly before: (change: LiveChange) => unknown
}

/** Everything that screens share: the API, what is known of the instance, and where the person is. */
export class Dashboard {
  readonly context: PageContext
  readonly session = new Session()
  readonly api: ApiClient
  readonly changes: ChangeStream
  readonly store: Store
  /** States that objects came into since the page was opened. */
  readonly steps = new Steps()
  readonly commands: CommandRuns
  readonly usage: UsageStream
  readonly router: Router
  readonly clock: PageClock
  /** The health of the instance. */
  readonly health = new Health()
  readonly notices = new Notices()
  readonly shortcuts = new Shortcuts()
  readonly drawer = new Drawer()
  readonly fileWork = new FileWork()

  /** @param recording what takes the place of an instance; without it the page's own is called */
  constructor(context: PageContext, routes: readonly ScreenRoute[], recording?: Recording) {
    this.context = context
    this.router = new Router(routes, recording?.address)
    this.api = recording?.api ?? new ApiClient(context, this.session)
    this.changes = new ChangeStream(context, this.session)
    this.clock = new PageClock(context.now)
    // Before the store: it needs objects as they were before a change.
    this.steps.follow(
      this.changes,
      recording?.now ?? (() => this.clock.read()),
      recording?.before ?? ((change) => this.store.known(change)),
    )
    this.commands = new CommandRuns(this.api)
    this.usage = new UsageStream(this.api, context)
    this.store = new Store(this.api, this.changes, context.account.id)
  }

  /** Connects to the instance and listens to the browser. */
  start(): void {
    this.router.start()
    this.router.path.subscribe(() => this.notices.leaveScreen())
    this.health.start(this.api, this.changes, this.clock)
    this.changes.start()
    this.clock.start(this.changes)
    this.shortcuts.start()
    this.fileWork.start(this.changes)
  }
}

const Context = createContext<Dashboard | null>(null)

/** Gives the dashboard to all components inside. */
export const DashboardProvider = Context.Provider

/** Returns the dashboard. @throws Error outside of a `DashboardProvider` */
export function useDashboard(): Dashboard {
  const dashboard = useContext(Context)
  if (!dashboard) throw new Error('This component is not inside the dashboard.')
  return dashboard
}
