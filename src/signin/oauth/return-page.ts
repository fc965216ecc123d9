import { html } from '../pages/html.ts'
import { pageAnswer } from '../pages/page.ts'
import { shownName } from '../pages/plain-name.ts'
import type { ReturnAddress } from './authorization-request.ts'
import { nameOf } from './client-name.ts'
import { destinationWords } from './destination-words.ts'
import { destinationOf } from './redirect-uri.ts'

/**
 * The page on which a person decides whether a client is told that it asked in a wrong way.
 *
 * @param fault what was wrong, as a sentence
 * @param way where the client is told
 */
export function returnPage({ client, redirectUri }: ReturnAddress, fault: string, way: string): Response {
  const body = html`<p>A program that calls itself <strong>${shownName(nameOf(client.metadata))}</strong> asks for access in a way that berth
does not take:</p>
<p class="notice failure">${fault}</p>
<p>Nothing was granted. berth leads nobody elsewhere by itself: go back to the program only if you have just started this
yourself; otherwise close this page.</p>
<dl class="facts">
<dt>Leads to</dt><dd>${destinationWords(redirectUri)}</dd>
</dl>
<p class="actions"><a class="button plain" rel="noreferrer" href="${way}">Go back to ${destinationOf(redirectUri).name}</a></p>`
  return pageAnswer({ status: 400, title: 'This program asked in a wrong way', body, isNarrow: true })
}
