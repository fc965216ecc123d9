import { type Html, html } from '../../http/pages/html.ts'
import { navigation, pageResponse } from '../../http/pages/page.ts'
import { CSRF_FIELD } from '../pages/header.ts'
import { shownName } from '../pages/names.ts'
import { CODE_MS } from './codes.ts'
import { fieldsOf, type KeyRequest } from './key-request.ts'

/** The account that would own the key. */
interface KeyOwner {
  id: string
  label: string
}

/** Asks the person who is signed in whether a terminal may have a key. */
export function approvalPage(keyRequest: KeyRequest, account: KeyOwner, csrf: string): Response {
  const { callback, host, label } = keyRequest
  const fields = Object.entries({ ...fieldsOf(keyRequest), [CSRF_FIELD]: csrf })
  const body = html`<p>A terminal on <strong>${shownName(host)}</strong> asks for an API key of its own.</p>
<dl class="facts">
<dt>Machine</dt><dd>${shownName(host)}, as it says itself</dd>
<dt>Account</dt><dd>${account.label !== '' && [shownName(account.label), ' ']}<span class="quiet">${account.id}</span></dd>
<dt>Key</dt><dd>${shownName(label)}</dd>
<dt>May do</dt><dd>everything that this account may: use and delete all servers and projects, use up credits, manage webhooks and API keys</dd>
<dt>Valid</dt><dd>until it is deleted, with <code>berth logout</code> there or on the page <a href="/access">Access</a></dd>
</dl>
<p class="notice">Approve only if you have just run <code>berth login</code> yourself${
    callback ? '.' : ', and type the code that you get only into that terminal. Give it to nobody.'
  }</p>
<form method="post" action="/cli/authorize">
${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">\n`)}<p class="actions">
<button name="decision" value="approve">Approve</button>
<button name="decision" value="deny" class="plain">Deny</button>
</p>
</form>`
  // Browsers check the redirect after a form against the policy too.
  const formTargets = callback ? [`http://127.0.0.1:${callback.port}`] : []
  return pageResponse({
    title: 'Sign in a terminal?',
    header: navigation(),
    body,
    formTargets,
    isNarrow: true,
  })
}

/** Shows the code that the person types into the terminal. */
export function codePage(code: string, { host }: KeyRequest): Response {
  const body = html`<p>Type this code into the terminal on <strong>${shownName(host)}</strong>:</p>
<p><strong class="secret code" id="code">${code}</strong></p>
<p class="quiet">It is valid once, for ${CODE_MS / 60_000} minutes. Upper or lower case and dashes do not matter.</p>
<p class="notice">Give it to nobody: it stands for your account.</p>`
  return pageResponse({ title: 'Your code', header: navigation(), body, isNarrow: true })
}

/** Shows that the terminal gets no key, if the terminal does not listen itself. */
export const deniedPage = ({ host }: KeyRequest): Response =>
  pageResponse({ title: 'Denied', header: navigation(), body: denied(host), isNarrow: true })

const denied = (host: string): Html =>
  html`<p>The terminal on <strong>${shownName(host)}</strong> gets no key. If it still waits for a code, end it there with Ctrl-C.</p>
<p>If you did not run <code>berth login</code>, whoever sent you here wanted a key of your account.</p>`
