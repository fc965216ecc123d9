import { html } from './html.ts'
import { pageResponse } from './page.ts'

/** Makes the response with the page for a browser that opens a path which leads to nothing. */
export const unknownPathPage = (): Response =>
  pageResponse({
    status: 404,
    title: 'There is no such page',
    body: html`<p class="notice failure">Nothing is here, or not any more.</p>
<p><a href="/">Go to the start page</a></p>`,
    isNarrow: true,
    headers: { vary: 'accept' },
  })
