import type { Project } from '../../resources/projects/model.ts'
import type { Column, Style } from '../output.ts'

/** The columns of a list of projects. */
export const PROJECT_COLUMNS: Column<Project>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'SLUG', cell: ({ slug }) => slug },
  { heading: 'NAME', cell: ({ name }) => name },
  { heading: 'STATUS', cell: statusOf, style: statusStyle },
  { heading: 'VISIBILITY', cell: ({ visibility }) => visibility },
  { heading: 'LIFECYCLE', cell: ({ lifecycle }) => lifecycle },
  { heading: 'SERVER', cell: ({ server_id }) => server_id },
  { heading: 'URL', cell: ({ url }) => url ?? '' },
]

/** A project as facts. */
export const projectDetails = (project: Project): [string, string][] => [
  ['ID', project.id],
  ['Name', project.name],
  ['Slug', project.slug],
  ['Description', project.description ?? '–'],
  ['Status', statusOf(project)],
  ['Visibility', project.visibility],
  ['Lifecycle', project.lifecycle],
  ['Server', project.server_id],
  ['Folder', `projects/${project.slug}`],
  ['Template', project.template ?? '–'],
  ['URL', project.url ?? '–'],
  ['Created', project.created_at],
  ['Updated', project.updated_at],
]

/** What the app does, and how far its bring-up is where that says more. */
export function statusOf({ runtime_status, init_phase }: Project): string {
  if (init_phase === null) return runtime_status
  if (init_phase === 'ready') return runtime_status
  return runtime_status === 'unbuilt' ? init_phase : `${runtime_status}, ${init_phase}`
}

function statusStyle({ runtime_status, init_phase }: Project): Style | undefined {
  if (init_phase === 'failed') return 'red'
  if (init_phase !== null && init_phase !== 'ready') return 'yellow'
  return runtime_status === 'running' ? 'green' : 'dim'
}
