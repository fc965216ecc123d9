import type { ApiKey } from '../../resources/keys/model.ts'
import { csrfInput, signedInHeader } from '../pages/header.ts'
import { html } from '../pages/html.ts'
import { pageAnswer } from '../pages/page.ts'
import { plainName } from '../pages/plain-name.ts'
import type { SignedIn } from '../session/visits.ts'
import { type Names, reachOf, reachWords } from './reach.ts'
import { lastUsed } from './words.ts'

const BACK = html`<a class="button plain" href="/access">Back</a>`

/** Shows a key itself. @param key null where no copy of it was kept */
export function revealPage({ csrf }: SignedIn, { label, masked }: ApiKey, key: string | null): Response {
  const title = `API key ${plainName(label)}`
  const header = signedInHeader(csrf)
  const body =
    key === null
      ? html`<p class="notice">berth has no copy of <code class="whole">${masked}</code>: it was made before copies were kept.
It works on; who has it knows it. Where nobody does, delete it and create another.</p>
<p class="actions">${BACK}</p>`
      : html`<p>Whoever has this key can do all that it reaches. Keep it out of code and chats.</p>
<p><code class="secret">${key}</code></p>
<p class="actions">${BACK}</p>`
  return pageAnswer({ title, header, body, isNarrow: true })
}

/** Asks once more before a key is deleted. */
export function deletePage({ csrf }: SignedIn, key: ApiKey, names: Names): Response {
  const body = html`<p>It opens nothing from then on: programs that use it are refused, and browsers that were signed in with it are
signed out. It cannot be brought back.</p>
<dl class="facts">
<dt>Key</dt><dd><code class="whole">${key.masked}</code></dd>
<dt>Reaches</dt><dd>${reachWords(reachOf(key), names)}</dd>
<dt>Use</dt><dd>${lastUsed(key.last_used_at)}</dd>
</dl>
<div class="actions">
<form method="post" action="/access/keys/${key.id}/delete">${csrfInput(csrf)}<button class="danger full">Delete the key</button></form>
<a class="button plain" href="/access">Keep it</a>
</div>`
  return pageAnswer({
    title: `Delete the API key ${plainName(key.label)}?`,
    header: signedInHeader(csrf),
    body,
    isNarrow: true,
  })
}
