import { useCallback } from 'preact/hooks'
import { runBuild } from '../components/begin.ts'
import { Button } from '../components/button.tsx'
import { Id, ServerLink } from '../components/copy.tsx'
import { isIdleBuild } from '../components/goals.tsx'
import { LogView } from '../components/log-view.tsx'
import { Empty, Failure, Loading, ScreenPage, Tabs } from '../components/page.tsx'
import { type Phase, PhaseBar, State } from '../components/state.tsx'
import { goalTitle } from '../components/text.ts'
import { useDashboard } from '../dashboard.ts'
import type { ScreenProps } from '../router.ts'
import type { Build } from '../store/store.ts'

/** A build: its phases, its log, the files that it made and the app. */
export default function BuildScreen({ params }: ScreenProps) {
  const dashboard = useDashboard()
  const { store } = dashboard
  const { buildId = '', tab = '' } = params
  const builds = store.builds.open()
  const build = builds.get(buildId)
  const state = builds.state.value
  if (!build) {
    if (state instanceof Error) return <Failure error={state} retry={() => builds.load()} />
    if (state !== 'ready') return <Loading />
    return (
      <ScreenPage title="No such build">
        <Empty title="This build is not there">
          <p>
            Its server was deleted, or it belongs to another account.{' '}
            <a href="/dashboard/builds">All builds</a>
          </p>
        </Empty>
      </ScreenPage>
    )
  }
  const { id, goal, status, serverId, url, artifacts, steps } = build
  const base = `/dashboard/builds/${id}`
  return (
    <ScreenPage
      title={goalTitle(goal)}
      isFull
      above={
        <>
          <a href="/dashboard/builds">Builds</a> / <ServerLink id={serverId} />
        </>
      }
      beside={
        <>
          {isIdleBuild(build) ? (
            <State of="completed, nothing implemented" look="waiting" />
          ) : (
            <State of={status} look={status === 'running' ? 'active' : undefined} />
          )}
          <Id id={id} />
        </>
      }
      actions={
        <>
          {url !== null && (
            <a class="button plain" href={url} target="_blank" rel="noopener noreferrer">
              Open
            </a>
          )}
          {status !== 'running' && (
            <Button icon="restart" onClick={() => runBuild(dashboard, serverId, goal)}>
              Run again
            </Button>
          )}
        </>
      }
    >
      <PhaseBar label="Phases of the build" phases={steps.map((step) => phaseOf(step, status))} />
      <Tabs
        label="Parts of the build"
        here={tab === '' ? base : `${base}/${tab}`}
        tabs={[
          { href: base, label: 'Log' },
          { href: `${base}/files`, label: 'Files', count: artifacts.length },
          ...(url === null ? [] : [{ href: `${base}/preview`, label: 'Preview' }]),
        ]}
      />
      {tab === 'files' ? (
        <Artifacts build={build} />
      ) : tab === 'preview' && url !== null ? (
        // The app is another origin, in another process: it may run its scripts, and has no way to this page.
        <iframe
          class="preview"
          title="The app"
          src={url}
          sandbox="allow-scripts allow-forms allow-same-origin"
        />
      ) : (
        <BuildLog build={build} />
      )}
    </ScreenPage>
  )
}

/** Returns a phase of a build with its times. One that is pending though it has ended has failed. */
function phaseOf(
  { key, label, status, skipped, beganAt, endedAt }: Build['steps'][number],
  build: Build['status'],
): Phase {
  if (skipped && status === 'done')
    return {
      name: key,
      title: 'Nothing was implemented: the log says why',
      state: 'skipped',
      word: 'skipped',
    }
  const hasFailed = build === 'completed' && status === 'pending' && endedAt !== undefined
  return {
    name: key,
    title: label,
    state: hasFailed ? 'failed' : status === 'running' ? 'current' : status,
    begin: beganAt === undefined ? null : Date.parse(beganAt),
    end: endedAt === undefined ? null : Date.parse(endedAt),
  }
}

function BuildLog({ build }: { build: Build }) {
  const { api } = useDashboard()
  const { id: buildId, serverId } = build
  const open = useCallback(
    (tail: number, signal: AbortSignal) =>
      api.stream('builds.logs', { params: { serverId, buildId }, query: { tail }, signal }),
    [api, serverId, buildId],
  )
  return <LogView label="Log of the build" open={open} />
}

const Artifacts = ({ build: { artifacts, serverId } }: { build: Build }) =>
  artifacts.length === 0 ? (
    <Empty title="It has made no files yet" />
  ) : (
    <ul class="artifacts">
      {artifacts.map((path) => (
        <li key={path}>
          <a href={`/dashboard/servers/${serverId}/files?${new URLSearchParams({ file: path })}`}>
            <code>{path}</code>
          </a>
        </li>
      ))}
    </ul>
  )
