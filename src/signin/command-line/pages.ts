import { CSRF_FIELD } from '../pages/csrf.ts'
import { type Html, html } from '../pages/html.ts'
import { pageAnswer } from '../pages/page.ts'
import { shownName } from '../pages/plain-name.ts'
import { CODE_MS } from './codes.ts'
import { fieldsOf, type Inquiry } from './inquiry.ts'

/** Whom the key would belong to. */
export interface ForAccount {
  id: string
  label: string
}

/** Asks the person who is signed in whether a terminal may have a key. */
export function askPage(inquiry: Inquiry, account: ForAccount, csrf: string): Response {
  const { back, host, label } = inquiry
  const fields = Object.entries({ ...fieldsOf(inquiry), [CSRF_FIELD]: csrf })
  const body = html`<p>A terminal on <strong>${shownName(host)}</strong> asks for an API key of its own.</p>
<dl class="facts">
<dt>Machine</dt><dd>${shownName(host)}, as it says itself</dd>
<dt>Account</dt><dd>${account.label !== '' && [shownName(account.label), ' ']}<span class="quiet">${account.id}</span></dd>
<dt>Key</dt><dd>${shownName(label)}</dd>
<dt>May do</dt><dd>everything that this account may: use and delete all servers and projects, use up credits, manage webhooks and API keys</dd>
<dt>Valid</dt><dd>until it is deleted, with <code>berth logout</code> there or on the page <a href="/access">Access</a></dd>
</dl>
<p class="notice">Approve only if you have just run <code>berth login</code> yourself${
    back ? '.' : ', and type the code that you get into that terminal alone. Give it to nobody.'
  }</p>
<form method="post" action="/cli/authorize">
${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">\n`)}<p class="actions">
<button name="decision" value="approve">Approve</button>
<button name="decision" value="deny" class="plain">Deny</button>
</p>
</form>`
  // The form leads there: browsers hold its redirect against the policy too.
  const formTargets = back ? [`http://127.0.0.1:${back.port}`] : []
  return pageAnswer({ title: 'Sign in a terminal?', body, formTargets })
}

/** Shows the code that the person types into the terminal. */
export function codePage(code: string, { host }: Inquiry): Response {
  const body = html`<p>Type this code into the terminal on <strong>${shownName(host)}</strong>:</p>
<p><strong class="secret code" id="code">${code}</strong></p>
<p class="quiet">It is valid once, for ${CODE_MS / 60_000} minutes. Upper or lower case and dashes do not matter.</p>
<p class="notice">Give it to nobody: it stands for your account.</p>`
  return pageAnswer({ title: 'Your code', body })
}

/** Says that the terminal gets nothing, where it cannot be told itself. */
export const deniedPage = ({ host }: Inquiry): Response => pageAnswer({ title: 'Denied', body: denied(host) })

const denied = (host: string): Html =>
  html`<p>The terminal on <strong>${shownName(host)}</strong> gets no key. If it still waits for a code, end it there with Ctrl-C.</p>
<p>If you did not run <code>berth login</code>, whoever sent you here wanted a key of your account.</p>`
