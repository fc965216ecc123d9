import type { Dashboard } from '../../dashboard.ts'

/** Begins a build on a server, and goes to it. */
export async function runBuild(
  { api, store, router }: Dashboard,
  serverId: string,
  goal: string,
): Promise<void> {
  const { build_id: buildId } = await api.call('builds.create', { params: { serverId }, body: { goal } })
  const { build } = await api.call('builds.get', { params: { serverId, buildId } })
  store.builds.add(build)
  router.go(`/dashboard/builds/${buildId}`)
}
