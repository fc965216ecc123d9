import type { Build } from '../../resources/builds/model.ts'
import { count } from '../format.ts'
import type { Column, Style } from '../output.ts'

/** Characters of a goal in a table. */
const SHOWN_GOAL = 48

/** The columns of a list of builds. */
export const BUILD_COLUMNS: Column<Build>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'STATUS', cell: statusOf, style: statusStyle },
  { heading: 'GOAL', cell: ({ goal }) => shortened(goal, SHOWN_GOAL) },
  { heading: 'SERVER', cell: ({ serverId }) => serverId },
  { heading: 'URL', cell: ({ url }) => url ?? '' },
]

/** A build as facts. */
export const buildDetails = (build: Build): [string, string][] => [
  ['ID', build.id],
  ['Status', statusOf(build)],
  ['Goal', shortened(build.goal, 2_000)],
  ['Server', build.serverId],
  ['Steps', build.steps.map(({ key, status }) => `${key} ${status}`).join(', ')],
  ['Artifacts', artifactsText(build.artifacts)],
  ['URL', build.url ?? '–'],
  ['Created', build.createdAt],
]

/** How far a build is. The API knows no failure: it is over and has no URL. */
export function statusOf({ status, url, steps }: Build): string {
  if (status === 'queued') return 'queued'
  if (status === 'completed' && url !== null) return 'completed'
  const at = steps.find((step) => step.status !== 'done')?.key ?? 'plan'
  return status === 'running' ? `running, ${at}` : `failed in ${at}`
}

function statusStyle({ status, url }: Build): Style {
  if (status !== 'completed') return 'yellow'
  return url === null ? 'red' : 'green'
}

/** The first line of a goal. */
function shortened(goal: string, length: number): string {
  const [first = ''] = goal.trim().split('\n', 1)
  const characters = [...first]
  if (characters.length <= length && first === goal.trim()) return first
  return `${characters.slice(0, length).join('')}…`
}

function artifactsText(artifacts: readonly string[]): string {
  if (artifacts.length === 0) return '–'
  const [shown, rest] = [artifacts.slice(0, 10), artifacts.length - 10]
  return rest > 0 ? `${shown.join(', ')} and ${count(rest, 'more file')}` : shown.join(', ')
}
