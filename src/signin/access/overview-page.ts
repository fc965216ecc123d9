import type { ApiKey } from '../../resources/keys/model.ts'
import type { GrantView } from '../oauth/grants.ts'
import { csrfInput, signedInHeader } from '../pages/header.ts'
import { type Html, html } from '../pages/html.ts'
import { mixedScripts } from '../pages/mixed-name.ts'
import { pageAnswer } from '../pages/page.ts'
import { shownName } from '../pages/plain-name.ts'
import type { Session } from '../session/sessions.ts'
import type { SignedIn } from '../session/visits.ts'
import { isEverything, type Names, reachOf, reachWords } from './reach.ts'
import { browserName, lastUsed, moment, placeOf } from './words.ts'

/** What has access to an account. */
export interface Overview {
  account: { id: string; label: string }
  keys: readonly ApiKey[]
  grants: readonly GrantView[]
  browsers: readonly Session[]
  /** What the servers and projects are called that any of these is limited to. */
  names: Names
  /** What was done just now, a sentence. */
  done?: Html | undefined
}

/** `/access`: what has access to the account, each with what ends it. */
export function overviewPage(visit: SignedIn, given: Overview): Response {
  const { account, keys, grants, browsers, names, done } = given
  const wide = keys.filter((key) => isEverything(reachOf(key)))
  const { csrf, origin, session } = visit
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
<p class="quiet"><code>berth open</code> in a terminal signs another browser in.</p>`
  return pageAnswer({ title: 'Access', body, header: signedInHeader(csrf, '/access') })
}

const count = (how: number, noun: string): string => `${how} ${noun}${how === 1 ? '' : 's'}`

const section = (id: string, title: string, what: Html, entries: readonly Html[]): Html => html`
<section aria-labelledby="${id}">
<h2 id="${id}">${title}</h2>
<p class="quiet">${what}</p>
${entries.length > 0 && html`<ul class="entries">${entries}</ul>`}
</section>`

function keyEntry(key: ApiKey, csrf: string, names: Names, isLast: boolean): Html {
  const { id, label, masked, created_at, last_used_at } = key
  const about = html`<span class="hidden"> the key ${shownName(label)}</span>`
  return entry(
    html`<strong>${shownName(label)}</strong> <code class="whole">${masked}</code>`,
    html`Reaches ${reachWords(reachOf(key), names)}${isLast && html`, as no other key does: it cannot be deleted`}.<br>Created ${moment(created_at)}, ${lastUsed(last_used_at)}.`,
    html`<form method="post" action="/access/keys/${id}/reveal">${csrfInput(csrf)}<button class="plain">Reveal${about}</button></form>
${!isLast && html`<a class="button danger" href="/access/keys/${id}/delete">Delete${about}</a>`}`,
  )
}

function grantEntry(grant: GrantView, csrf: string, names: Names): Html {
  const { id, clientId, clientName, redirectUris, createdAt, lastUsedAt } = grant
  const mixed = mixedScripts(clientName)
  return entry(
    html`<strong>${shownName(clientName)}</strong>${mixed && html` <span class="mark">mixes ${mixed.join(' and ')}</span>`}`,
    html`Answers go to ${placeOf(redirectUris)}. Client id <code>${clientId}</code>.<br>Reaches ${reachWords(reachOf(grant), names)}.<br>Let in ${moment(createdAt)}, ${lastUsed(lastUsedAt)}.`,
    html`<form method="post" action="/access/clients/${id}/revoke">${csrfInput(csrf)}<button class="danger">Revoke<span class="hidden"> the access of ${shownName(clientName)}</span></button></form>`,
  )
}

function browserEntry({ id, userAgent, createdAt, seenAt }: Session, isThis: boolean, csrf: string): Html {
  const name = browserName(userAgent)
  return entry(
    html`<strong>${shownName(name)}</strong>${isThis && html` <span class="mark">this one</span>`}`,
    html`Signed in ${moment(createdAt)}, ${lastUsed(seenAt)}.`,
    html`<form method="post" action="/access/browsers/${id}/signout">${csrfInput(csrf)}<button class="plain">Sign out<span class="hidden"> ${isThis ? 'this browser' : name}</span></button></form>`,
  )
}

const entry = (head: Html, facts: Html, actions: Html): Html => html`<li>
<div class="what"><p>${head}</p><p class="quiet">${facts}</p></div>
<div class="actions">${actions}</div>
</li>
`
