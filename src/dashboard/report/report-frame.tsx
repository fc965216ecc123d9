import type { RecordedRun } from '../../http/dashboard/report-page.ts'
import { Icon } from '../components/button.tsx'
import { useDashboard } from '../dashboard.ts'
import { Mark } from '../frame/navigation.tsx'
import { Outlet } from '../frame/outlet.tsx'
import { REPORT_NAVIGATION } from './screens.tsx'

/** The page around the screens of a report: what it is of, and the links to the others. */
export function ReportFrame({ recorded }: { recorded: RecordedRun }) {
  const { router, context } = useDashboard()
  const here = router.path.value
  const { data_dir: directory, version } = context
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="sidebar">
        <div class="brand">
          <a class="name" href="/">
            <Mark />
            berth
          </a>
        </div>
        <nav aria-label="Screens">
          <ul>
            {REPORT_NAVIGATION.map(({ path, label, icon }) => (
              <li key={path}>
                <a href={path} aria-current={here === path ? 'page' : undefined}>
                  <Icon name={icon} />
                  {label}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="account">
          <p>
            <span class="who">{recorded.title}</span>
            {directory !== null && (
              <span class="quiet" title={directory}>
                <bdi>{directory}</bdi>
              </span>
            )}
            <span class="quiet" title="The version of berth">
              {version}
            </span>
          </p>
        </div>
      </header>
      <div class="content">
        {recorded.omitted.length > 0 && (
          <div class="banners">
            {recorded.omitted.map((sentence) => (
              <p class="banner" key={sentence}>
                {sentence}
              </p>
            ))}
          </div>
        )}
        <main id="main">
          <Outlet />
        </main>
      </div>
    </>
  )
}
