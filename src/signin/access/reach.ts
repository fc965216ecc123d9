import type { ApiKey } from '../../resources/keys/model.ts'
import type { GrantView } from '../oauth/grants.ts'
import { type Html, html } from '../pages/html.ts'
import { quotedName } from '../pages/plain-name.ts'
import type { Reachable } from '../reachable.ts'

/** Of a long list so many are named. */
const MOST_NAMED = 20

/** What something may reach; an empty list means all. */
export interface Reach {
  servers: readonly string[]
  projects: readonly string[]
}

/** What servers and projects are called, by id. */
export type Names = ReadonlyMap<string, string>

/** What a key or a program may reach. */
export const reachOf = (one: ApiKey | GrantView): Reach =>
  'clientName' in one
    ? { servers: one.allowedServerIds, projects: one.allowedProjectIds }
    : { servers: one.allowed_server_ids, projects: one.allowed_project_ids }

/** Whether it is the whole account. */
export const isEverything = ({ servers, projects }: Reach): boolean => servers.length + projects.length === 0

/** What servers and projects are called. */
export const namesOf = ({ servers, projects }: Reachable): Names =>
  new Map([
    ...servers.map(({ id, task }) => [id, task] as const),
    ...projects.map(({ id, name }) => [id, name] as const),
  ])

/** A reach in words, such as: the whole account; server “Shop” srv_1 with all projects there. */
export function reachWords(reach: Reach, names: Names): Html {
  const { servers, projects } = reach
  if (isEverything(reach)) return html`the whole account`
  if (projects.length === 0) return html`${list('server', servers, names)} with all projects there`
  const which = servers.length === 0 ? 'all servers' : list('server', servers, names)
  return html`${which}, of projects there only ${list('project', projects, names)}`
}

function list(noun: string, ids: readonly string[], names: Names): Html {
  const items = ids.slice(0, MOST_NAMED).map((id, n) => html`${n > 0 && ', '}${named(id, names.get(id))}`)
  const more = ids.length - items.length
  return html`${ids.length === 1 ? noun : `${noun}s`} ${items}${more > 0 && ` and ${more} more`}`
}

/** One that is gone stays in the list: without it that might suddenly mean everything. */
const named = (id: string, name: string | undefined): Html =>
  name === undefined
    ? html`<code>${id}</code> (gone)`
    : html`${name !== '' && [quotedName(name), ' ']}<code>${id}</code>`
