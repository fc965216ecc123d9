import { useDashboard } from '../../dashboard.ts'

/** The scope of a credential, as the API shows it. */
interface Scope {
  readonly allowed_server_ids: readonly string[]
  readonly allowed_project_ids: readonly string[]
}

/** What a credential reaches, in words. */
export function Reach({ of: { allowed_server_ids: servers, allowed_project_ids: projects } }: { of: Scope }) {
  const { store } = useDashboard()
  if (servers.length + projects.length === 0) return <>the whole account</>
  const names = [
    ...servers.map((id) => store.servers.open().get(id)?.task || id),
    ...projects.map((id) => store.projects.open().get(id)?.name ?? id),
  ]
  return (
    <>
      only <bdi>{names.join(', ')}</bdi>
    </>
  )
}
