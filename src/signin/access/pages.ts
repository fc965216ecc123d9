import { type Html, html } from '../../http/pages/html.ts'
import { pageResponse } from '../../http/pages/page.ts'
import type { ApiKey } from '../../resources/keys/model.ts'
import type { AccountResources } from '../account-resources.ts'
import type { GrantView } from '../oauth/grants.ts'
import { csrfInput, mixedScripts, plainName, quotedName, shownName, signedInHeader } from '../pages/parts.ts'
import type { SignedInRequest } from '../session/browser-requests.ts'
import type { BrowserSession } from '../session/sessions.ts'
import { browserName, destinationsOf, formatTime, lastUsedText } from './api.ts'

/** The credentials and browsers that have access to an account. */
interface AccessOverview {
  account: { id: string; label: string }
  keys: readonly ApiKey[]
  grants: readonly GrantView[]
  browsers: readonly BrowserSession[]
  /** Names of the servers and projects in the scopes of the keys and programs. */
  names: ResourceNames
  /** A sentence about the action just completed. */
  done?: Html | undefined
}

/** Renders `/access`: all access to the account, with the means to end it. */
export function overviewPage(browser: SignedInRequest, given: AccessOverview): Response {
  const { account, keys, grants, browsers, names, done } = given
  const wide = keys.filter((key) => isWholeAccount(credentialScope(key)))
  const { csrf, origin, session } = browser
  const body = html`${done !== undefined && html`<p class="notice" role="status">${done}</p>`}
<p class="quiet">You are signed in to ${account.label === '' ? null : html`<strong>${shownName(account.label)}</strong> · `}<code>${account.id}</code>.</p>
<ul class="jumps">
<li><a href="#keys">${count(keys.length, 'API key')}</a></li>
<li><a href="#programs">${count(grants.length, 'program')}</a></li>
<li><a href="#browsers">${count(browsers.length, 'browser')}</a></li>
</ul>
${section(
  'keys',
  'API keys',
  html`For programs and the command line.`,
  keys.map((key) => keyEntry(key, csrf, names, wide.length === 1 && key === wide[0])),
)}
<p class="quiet">${keys.length === 0 && html`There are none. `}<code>berth login</code> in a terminal adds one for the command line there,
<code>berth keys create LABEL</code> one for a program.</p>
${section(
  'programs',
  'Programs',
  html`MCP hosts and others that you have let in.`,
  grants.map((grant) => grantEntry(grant, csrf, names)),
)}
<p class="quiet">${grants.length === 0 && html`There are none. `}Point an MCP host, such as an editor, at <code>${origin}/mcp</code>: it brings
you to a page here that asks what it may do.</p>
${section(
  'browsers',
  'Browsers',
  html`Signed in to these pages.`,
  browsers.map((browser) => browserEntry(browser, browser.id === session.id, csrf)),
)}
${
  browsers.length > 1 &&
  html`<form method="post" action="/access/other-browsers/signout">${csrfInput(csrf)}<button class="plain">Sign out all other browsers</button></form>`
}
<p class="quiet"><code>berth open</code> in a terminal signs another browser in; <code>berth open --print</code> prints its link.</p>`
  return pageResponse({ title: 'Access', body, header: signedInHeader(csrf, '/access') })
}

const count = (how: number, noun: string): string => `${how} ${noun}${how === 1 ? '' : 's'}`

const section = (id: string, title: string, what: Html, entries: readonly Html[]): Html => html`
<section aria-labelledby="${id}">
<h2 id="${id}">${title}</h2>
<p class="quiet">${what}</p>
${entries.length > 0 && html`<ul class="entries">${entries}</ul>`}
</section>`

function keyEntry(key: ApiKey, csrf: string, names: ResourceNames, isLast: boolean): Html {
  const { id, label, masked, created_at, last_used_at } = key
  const about = html`<span class="hidden"> the key ${shownName(label)}</span>`
  return entry(
    html`<strong>${shownName(label)}</strong> <code class="whole">${masked}</code>`,
    html`Reaches ${describeScope(credentialScope(key), names)}${isLast && html`. It is the last key that does, so it cannot be deleted`}.<br>Created ${formatTime(created_at)}, ${lastUsedText(last_used_at)}.`,
    html`<form method="post" action="/access/keys/${id}/reveal">${csrfInput(csrf)}<button class="plain">Reveal${about}</button></form>
${!isLast && html`<a class="button danger" href="/access/keys/${id}/delete">Delete${about}</a>`}`,
  )
}

function grantEntry(grant: GrantView, csrf: string, names: ResourceNames): Html {
  const { id, clientId, clientName, redirectUris, createdAt, lastUsedAt } = grant
  const mixed = mixedScripts(clientName)
  return entry(
    html`<strong>${shownName(clientName)}</strong>${mixed && html` <span class="mark">mixes ${mixed.join(' and ')}</span>`}`,
    html`Answers go to ${destinationsOf(redirectUris)}. Client id <code>${clientId}</code>.<br>Reaches ${describeScope(credentialScope(grant), names)}.<br>Let in ${formatTime(createdAt)}, ${lastUsedText(lastUsedAt)}.`,
    html`<form method="post" action="/access/clients/${id}/revoke">${csrfInput(csrf)}<button class="danger">Revoke<span class="hidden"> the access of ${shownName(clientName)}</span></button></form>`,
  )
}

function browserEntry(
  { id, userAgent, createdAt, seenAt, isAdmin }: BrowserSession,
  isThis: boolean,
  csrf: string,
): Html {
  const name = browserName(userAgent)
  return entry(
    html`<strong>${shownName(name)}</strong>${isThis && html` <span class="mark">this one</span>`}`,
    html`${isAdmin && html`May use the control API: it has the rights of the instance.<br>`}Signed in ${formatTime(createdAt)}, ${lastUsedText(seenAt)}.`,
    html`<form method="post" action="/access/browsers/${id}/signout">${csrfInput(csrf)}<button class="plain">Sign out<span class="hidden"> ${isThis ? 'this browser' : name}</span></button></form>`,
  )
}

const entry = (head: Html, facts: Html, actions: Html): Html => html`<li>
<div class="what"><p>${head}</p><p class="quiet">${facts}</p></div>
<div class="actions">${actions}</div>
</li>
`

const BACK = html`<a class="button plain" href="/access">Back</a>`

/**
 * Shows the text of a key.
 *
 * @param key null if no copy of it was kept
 */
export function revealPage(
  { csrf }: SignedInRequest,
  { label, masked }: ApiKey,
  key: string | null,
): Response {
  const title = `API key ${plainName(label)}`
  const header = signedInHeader(csrf)
  const body =
    key === null
      ? html`<p class="notice">berth has no copy of <code class="whole">${masked}</code>: it was made before copies were kept.
It works on; who has it knows it. Where nobody does, delete it and create another.</p>
<p class="actions">${BACK}</p>`
      : html`<p>A program that has this key can do all that it reaches. Keep it out of code and chats.</p>
<p><code class="secret">${key}</code></p>
<p class="actions">${BACK}</p>`
  return pageResponse({ title, header, body, isNarrow: true })
}

/** Asks for confirmation before a key is deleted. */
export function deletePage({ csrf }: SignedInRequest, key: ApiKey, names: ResourceNames): Response {
  const body = html`<p>It opens nothing from then on: programs that use it are refused, and browsers that were signed in with it are
signed out. It cannot be brought back.</p>
<dl class="facts">
<dt>Key</dt><dd><code class="whole">${key.masked}</code></dd>
<dt>Reaches</dt><dd>${describeScope(credentialScope(key), names)}</dd>
<dt>Use</dt><dd>${lastUsedText(key.last_used_at)}</dd>
</dl>
<div class="actions">
<form method="post" action="/access/keys/${key.id}/delete">${csrfInput(csrf)}<button class="danger full">Delete the key</button></form>
<a class="button plain" href="/access">Keep it</a>
</div>`
  return pageResponse({
    title: `Delete the API key ${plainName(key.label)}?`,
    header: signedInHeader(csrf),
    body,
    isNarrow: true,
  })
}

/** Number of names in a long list. @bound reader */
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
function describeScope(reach: CredentialScope, names: ResourceNames): Html {
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
