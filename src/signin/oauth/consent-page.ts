import { csrfInput } from '../pages/header.ts'
import { type Html, html } from '../pages/html.ts'
import { mixedScripts } from '../pages/mixed-name.ts'
import { pageAnswer } from '../pages/page.ts'
import { shownName } from '../pages/plain-name.ts'
import type { SignedIn } from '../session/visits.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import type { Choices } from './choices.ts'
import { nameOf } from './client-name.ts'
import { destinationWords } from './destination-words.ts'
import { policySource } from './redirect-uri.ts'

/** What the page is made of. */
interface ConsentPage {
  visit: SignedIn
  request: AuthorizationRequest
  choices: Choices
  /** What ties the answer to what is shown. */
  handle: string
  /** What was sent, where it could not be granted, and why. */
  refused?: { form: URLSearchParams; fault: string }
}

/** The page on which a person lets a client in, or does not. */
export function consentPage({ visit, request, choices, handle, refused }: ConsentPage): Response {
  const { client, redirectUri } = request
  const name = nameOf(client.metadata)
  const mixed = mixedScripts(name)
  const account = choices.accountLabel
    ? html`${shownName(choices.accountLabel)} <span class="quiet">${choices.accountId}</span>`
    : choices.accountId
  const hidden = html`${csrfInput(visit.csrf)}<input type="hidden" name="handle" value="${handle}">`
  const body = html`<p class="lead">A program that calls itself <strong>${shownName(name)}</strong> asks to act for you.
Any program can call itself so: go on only if you have just started this yourself.</p>
${
  mixed &&
  html`<p class="notice failure">This name mixes ${mixed.join(' and ')} letters in one word. They look alike: the program may pose as another one.
Deny it unless you know why it does so.</p>`
}
${refused && html`<p class="notice failure" id="fault" role="alert">${refused.fault}</p>`}
<dl class="facts">
<dt>Answer goes to</dt><dd>${destinationWords(redirectUri)}</dd>
<dt>Account</dt><dd>${account}
<form class="out" method="post" action="/oauth/authorize">${hidden}<button class="plain" name="decision" value="switch">Use another account</button></form></dd>
<dt>Instance</dt><dd>${visit.origin}</dd>
</dl>
<form method="post" action="/oauth/authorize">
${hidden}
${reachFields(choices, refused?.form ?? new URLSearchParams(), refused !== undefined)}
<p class="quiet">Its access lasts until you end it on the page <a href="/access">Access</a>, or until 30 days without use.</p>
<p class="actions"><button name="decision" value="allow">Allow</button>
<button class="plain" name="decision" value="deny" formnovalidate>Deny</button></p>
</form>`
  return pageAnswer({
    title: 'Let a program in?',
    body,
    status: refused ? 400 : 200,
    // Many a program sends the browser on to a page of its maker's, which browsers count as the form's target too.
    formTargets: [...new Set([policySource(redirectUri), 'https:'])],
  })
}

function reachFields({ servers, projects }: Choices, form: URLSearchParams, isFaulty: boolean): Html {
  const isBoth = form.get('access') === 'all' && (form.has('server') || form.has('project'))
  // Boxes are out of sight beside the whole account: whoever chose both chooses anew.
  const sent = isBoth ? new URLSearchParams() : form
  const ticked = new Set([...sent.getAll('server'), ...sent.getAll('project')])
  const tasks = new Map(servers.map(({ id, task }) => [id, task || id]))
  const box = (field: string, id: string, label: Html) =>
    html`<label><input type="checkbox" name="${field}" value="${id}"${checked(ticked.has(id))}> ${label}</label>\n`
  // What there is no choice about needs no click.
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
