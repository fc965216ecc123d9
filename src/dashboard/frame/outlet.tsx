import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Empty, ErrorBoundary, Failure, ScreenPage } from '../components/page.tsx'
import { useDashboard } from '../dashboard.ts'
import type { ScreenProps, ScreenRoute } from '../router.ts'

/** A route whose screen is loaded. */
interface LoadedScreen {
  readonly route: ScreenRoute
  readonly Screen: ComponentType<ScreenProps>
}

/** The screen of the address. While its code loads, the one before stays. The first one appears together with the banners above it. */
export function Outlet() {
  const { router, context, health } = useDashboard()
  const [loaded, setLoaded] = useState<LoadedScreen | null>(null)
  const [failure, setFailure] = useState<Error | null>(null)
  const match = router.match.value
  const route = match?.route
  useEffect(() => {
    let isCurrent = true
    setFailure(null)
    route?.load().then(
      ({ default: Screen }) => isCurrent && setLoaded({ route, Screen }),
      (error: Error) => isCurrent && setFailure(error),
    )
    return () => {
      isCurrent = false
    }
  }, [route])
  if (!health.isRead.value && !context.is_report) return null
  if (!match || (match.route.isAdmin && !context.is_admin)) return <NotFound />
  // After an upgrade of berth the names of the scripts are others.
  if (failure)
    return <Failure error={new Error('This screen could not be loaded.')} retry={() => location.reload()} />
  if (loaded?.route !== match.route) return null
  return (
    <ErrorBoundary key={`${match.route.path} ${JSON.stringify(match.params)}`} name="This screen">
      <loaded.Screen params={match.params} />
    </ErrorBoundary>
  )
}

/** The screen of an address that names nothing. */
const NotFound = () => (
  <ScreenPage title="Nothing here">
    <Empty title="This address names nothing">
      <p>It may have been removed, or belong to another account.</p>
      <p>
        <a class="button" href="/dashboard/servers">
          Go to the servers
        </a>
      </p>
    </Empty>
  </ScreenPage>
)
