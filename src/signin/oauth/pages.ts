import { type Html, html } from '../../http/pages/html.ts'
import { navigation, pageResponse } from '../../http/pages/page.ts'
import { accountLabel } from '../../resources/accounts/label.ts'
import type { Queries } from '../../storage/database.ts'
import { type AccountResources, listAccountResources, type ReachableSources } from '../account-resources.ts'
import { csrfInput, mixedScripts, shownName } from '../pages/parts.ts'
import type { SignedInRequest } from '../session/browser-requests.ts'
import type { AuthorizationRequest, ReturnAddress } from './authorization-request.ts'
import type { GrantedScope } from './codes.ts'
import { policySource, redirectDestination } from './redirect-uri.ts'
import { clientName } from './table.ts'

/** The parts of the consent page. */
interface ConsentPage {
  browser: SignedInRequest
  request: AuthorizationRequest
  choices: ScopeChoices
  /** The project or deployment whose app gets the answer; null for a program outside of the servers. */
  app: string | null
  /** Ties the decision to the request that is shown. */
  handle: string
  /** The refused form and the reason. */
  refused?: { form: URLSearchParams; fault: string }
}

/** Renders the page on which a person approves or denies a client's access. */
export function consentPage({ browser, request, choices, app, handle, refused }: ConsentPage): Response {
  const { client, redirectUri } = request
  const name = clientName(client.metadata)
  const mixed = mixedScripts(name)
  const account = choices.accountLabel
    ? html`${shownName(choices.accountLabel)} <span class="quiet">${choices.accountId}</span>`
    : choices.accountId
  const hidden = html`${csrfInput(browser.csrf)}<input type="hidden" name="handle" value="${handle}">`
  const body = html`<p class="lead">A program that calls itself <strong>${shownName(name)}</strong> asks to act for you.
Any program can call itself so: go on only if you have just started this yourself.</p>
${
  mixed &&
  html`<p class="notice failure">This name mixes ${mixed.join(' and ')} letters in one word. They look alike: the program may pose as another one.
Deny it unless you know why it does so.</p>`
}
${refused && html`<p class="notice failure" id="fault" role="alert">${refused.fault}</p>`}
<dl class="facts">
<dt>Answer goes to</dt><dd>${describeDestination(redirectUri, app)}</dd>
<dt>Account</dt><dd>${account}
<form class="out" method="post" action="/oauth/authorize">${hidden}<button class="plain" name="decision" value="switch">Use another account</button></form></dd>
<dt>Instance</dt><dd>${browser.origin}</dd>
</dl>
<form method="post" action="/oauth/authorize">
${hidden}
${scopeFields(choices, refused?.form ?? new URLSearchParams(), refused !== undefined)}
<p class="quiet">Its access lasts until you end it on the page <a href="/access">Access</a>, or until 30 days without use.</p>
<p class="actions"><button name="decision" value="allow">Allow</button>
<button class="plain" name="decision" value="deny" formnovalidate>Deny</button></p>
</form>`
  return pageResponse({
    title: 'Let a program in?',
    header: navigation(),
    body,
    isNarrow: true,
    status: refused ? 400 : 200,
    // Many programs redirect the browser on to their maker's page. Browsers check that redirect against the policy
    // too.
    formTargets: [...new Set([policySource(redirectUri), 'https:'])],
  })
}

function scopeFields({ servers, projects }: ScopeChoices, form: URLSearchParams, isFaulty: boolean): Html {
  const isBoth = form.get('access') === 'all' && (form.has('server') || form.has('project'))
  // The page hides the boxes if the whole account is selected. If both were sent, the person chooses again.
  const sent = isBoth ? new URLSearchParams() : form
  const ticked = new Set([...sent.getAll('server'), ...sent.getAll('project')])
  const tasks = new Map(servers.map(({ id, task }) => [id, task || id]))
  const box = (field: string, id: string, label: Html) =>
    html`<label><input type="checkbox" name="${field}" value="${id}"${checked(ticked.has(id))}> ${label}</label>\n`
  // A single possibility is selected in advance.
  const chosen = servers.length === 0 ? 'all' : sent.get('access')
  const access = (value: string, label: string) =>
    html`<label><input type="radio" name="access" value="${value}" required${checked(chosen === value)}> ${label}</label>\n`
  const lists = html`<div class="choices">
<fieldset><legend>Servers</legend>
<div class="boxes">
${servers.map(({ id, task }) => box('server', id, html`${shownName(task || 'Server')} <span class="quiet">${id}</span>`))}</div></fieldset>
${
  projects.length > 0 &&
  html`<fieldset><legend>Projects</legend>
<p class="quiet">With none ticked: all projects on the ticked servers. With some: these projects alone. Their servers count as
ticked: who reaches a server can run commands on it.</p>
<div class="boxes">
${projects.map(({ id, name, slug, server_id }) => box('project', id, html`${shownName(name)} <span class="quiet">${slug}, on ${shownName(tasks.get(server_id) ?? server_id)}</span>`))}</div></fieldset>`
}
</div>`
  return html`<fieldset${isFaulty && html` aria-describedby="fault"`}>
<legend>What may it reach?</legend>
${access('all', 'The whole account: every server and project, also later ones, API keys and webhooks')}
${servers.length > 0 && [access('chosen', 'Only what I tick; no new servers, API keys or webhooks'), lists]}
${servers.length === 0 && html`<p class="quiet">There are no servers yet that you could choose among.</p>`}
</fieldset>`
}

const checked = (is: boolean): Html | false => is && html` checked`

/**
 * Renders the page on which a person decides whether to report an error to a client.
 *
 * @param fault a sentence about the error
 * @param way the URI that reports it to the client
 */
export function returnPage({ client, redirectUri }: ReturnAddress, fault: string, way: string): Response {
  const body = html`<p>A program that calls itself <strong>${shownName(clientName(client.metadata))}</strong> asks for access in a way that berth
does not take:</p>
<p class="notice failure">${fault}</p>
<p>Nothing was granted. berth leads nobody elsewhere by itself: go back to the program only if you have just started this
yourself; otherwise close this page.</p>
<dl class="facts">
<dt>Leads to</dt><dd>${describeDestination(redirectUri)}</dd>
</dl>
<p class="actions"><a class="button plain" rel="noreferrer" href="${way}">Go back to ${redirectDestination(redirectUri).name}</a></p>`
  return pageResponse({ status: 400, title: 'This program asked in a wrong way', body, isNarrow: true })
}

/** Describes the destination of codes for a redirect URI. */
function describeDestination(uri: string, app: string | null = null): Html {
  const { kind, name } = redirectDestination(uri)
  if (app !== null) return html`<strong>${name}</strong>, the app of ${app} on one of your servers`
  if (kind === 'machine') return html`<strong>${name}</strong>, a program on your machine`
  if (kind === 'app') return html`the app on your machine that opens <strong>${name}</strong> addresses`
  return html`<strong>${name}</strong>, on the web`
}

/** The servers and projects of an account, to choose from. */
interface ScopeChoices extends AccountResources {
  accountId: string
  accountLabel: string
}

/** Reads the servers and projects of an account. */
export async function listScopeChoices(
  accountId: string,
  { queries, ...parts }: ReachableSources & { queries: Queries },
): Promise<ScopeChoices> {
  return {
    accountId,
    accountLabel: accountLabel(queries, accountId),
    ...(await listAccountResources(accountId, parts)),
  }
}

/** A person's choice, or a sentence about why it cannot be granted. */
type ChosenScope = { scope: GrantedScope; fault?: never } | { scope?: never; fault: string }

/**
 * Reads a person's choice: the whole account, or servers and projects. Ticking a project ticks its server too, since
 * an empty list of servers would mean all of them.
 */
export function readChosen(form: URLSearchParams, { servers, projects }: ScopeChoices): ChosenScope {
  const serverIds = new Set(form.getAll('server'))
  const projectIds = new Set(form.getAll('project'))
  const ticked = serverIds.size + projectIds.size
  if (form.get('access') === 'all') {
    return ticked === 0
      ? { scope: { allowedServerIds: [], allowedProjectIds: [] } }
      : { fault: 'You ticked servers or projects, and the whole account. Choose one of the two.' }
  }
  if (form.get('access') !== 'chosen') return { fault: 'Choose what the program may reach.' }
  if (ticked === 0) return { fault: 'Tick at least one server or project, or choose the whole account.' }
  const chosenProjects = projects.filter(({ id }) => projectIds.has(id))
  const known = new Set(servers.map(({ id }) => id))
  const areKnown = [...serverIds].every((id) => known.has(id)) && chosenProjects.length === projectIds.size
  if (!areKnown)
    return { fault: 'Something that you ticked is gone. Look at what is there now and choose again.' }
  return {
    scope: {
      allowedServerIds: [...new Set([...serverIds, ...chosenProjects.map((project) => project.server_id)])],
      allowedProjectIds: [...projectIds],
    },
  }
}
