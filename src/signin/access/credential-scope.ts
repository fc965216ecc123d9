import { type Html, html } from '../../http/pages/html.ts'
import type { ApiKey } from '../../resources/keys/model.ts'
import type { AccountResources } from '../account-resources.ts'
import type { GrantView } from '../oauth/grants.ts'
import { quotedName } from '../pages/names.ts'

/** Number of names in a long list. */
const MAX_NAMED = 20

/** The scope of a credential. An empty list means all. */
export interface CredentialScope {
  servers: readonly string[]
  projects: readonly string[]
}

/** Names of servers and projects, by id. */
export type ResourceNames = ReadonlyMap<string, string>

/** Returns the scope of a key or a program. */
export const credentialScope = (one: ApiKey | GrantView): CredentialScope =>
  'clientName' in one
    ? { servers: one.allowedServerIds, projects: one.allowedProjectIds }
    : { servers: one.allowed_server_ids, projects: one.allowed_project_ids }

/** Reports whether it is the whole account. */
export const isWholeAccount = ({ servers, projects }: CredentialScope): boolean =>
  servers.length + projects.length === 0

/** Returns the names of servers and projects. */
export const resourceNames = ({ servers, projects }: AccountResources): ResourceNames =>
  new Map([
    ...servers.map(({ id, task }) => [id, task] as const),
    ...projects.map(({ id, name }) => [id, name] as const),
  ])

/** Describes a scope in words, such as: the whole account; server “Shop” srv_1 with all projects there. */
export function describeScope(reach: CredentialScope, names: ResourceNames): Html {
  const { servers, projects } = reach
  if (isWholeAccount(reach)) return html`the whole account`
  if (projects.length === 0) return html`${list('server', servers, names)} with all projects there`
  const which = servers.length === 0 ? 'all servers' : list('server', servers, names)
  return html`${which}, of projects there only ${list('project', projects, names)}`
}

function list(noun: string, ids: readonly string[], names: ResourceNames): Html {
  const items = ids.slice(0, MAX_NAMED).map((id, n) => html`${n > 0 && ', '}${named(id, names.get(id))}`)
  const more = ids.length - items.length
  return html`${ids.length === 1 ? noun : `${noun}s`} ${items}${more > 0 && ` and ${more} more`}`
}

/** A deleted server or project stays in the list. An empty list would mean the whole account. */
const named = (id: string, name: string | undefined): Html =>
  name === undefined
    ? html`<code>${id}</code> (gone)`
    : html`${name !== '' && [quotedName(name), ' ']}<code>${id}</code>`
