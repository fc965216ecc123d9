import { Html, html } from '../../http/pages/html.ts'
import { navigation, pageResponse } from '../../http/pages/page.ts'
import { prose } from './markup.ts'
import type { ApiReference, ReferenceGroup } from './reference.ts'
import { body, contents } from './render.ts'
import { ORIGIN } from './samples.ts'

/** The browser that asks for a page. */
export interface Viewer {
  /** Content of the header, after berth's name. */
  readonly header: Html
  /** The token with which its session is a credential for these operations; null if it has none. */
  readonly csrf: string | null
}

/** What a page has besides its reference. */
export interface ReferencePage {
  readonly path: string
  readonly title: string
  /** The path of the OpenAPI document. */
  readonly document: string
  /** The credential that a person types in to try an operation. */
  readonly credential: string
  /** The URLs of its script and of its own stylesheet. */
  readonly script: string
  readonly style: string
}

/** A reference whose parts for all browsers are rendered. */
interface RenderedReference {
  readonly introduction: Html
  readonly contents: Html
  readonly body: Html
  /** The words by which it was narrowed. */
  readonly sought: string
  readonly isEmpty: boolean
}

/** Renders the parts of a page that are the same for every browser. */
export const render = (reference: ApiReference, sought = ''): RenderedReference => ({
  introduction: html`${prose(reference.description)}`,
  contents: contents(reference),
  body: body(reference, sought !== ''),
  sought,
  isEmpty: reference.groups.length + reference.events.length === 0,
})

/** Returns a reference with only the operations and events that have all of the words. */
export function narrowed(reference: ApiReference, sought: string): ApiReference {
  const words = sought.toLowerCase().split(/\s+/).filter(Boolean)
  const hasAll = (thing: unknown): boolean => {
    const text = JSON.stringify(thing).toLowerCase()
    return words.every((word) => text.includes(word))
  }
  const groups = reference.groups.map(
    (group): ReferenceGroup => ({ ...group, operations: group.operations.filter(hasAll) }),
  )
  return {
    ...reference,
    groups: groups.filter(({ operations }) => operations.length > 0),
    events: reference.events.filter(hasAll),
  }
}

/**
 * Makes the response with the page of a reference. It runs one script, which sends requests only to the instance.
 *
 * @param viewer null for a browser that is not signed in
 * @param origin the instance's address, for samples
 */
export function referencePage(
  page: ReferencePage,
  { introduction, contents, body, sought, isEmpty }: RenderedReference,
  viewer: Viewer | null,
  origin: string,
): Response {
  const { header, csrf } = viewer ?? { header: navigation(page.path), csrf: null }
  const content = new Html(
    body.text
      .replaceAll(ORIGIN, Bun.escapeHTML(origin))
      .replaceAll(SOCKET_ORIGIN, Bun.escapeHTML(origin.replace('http', 'ws'))),
  )
  return pageResponse({
    title: page.title,
    header,
    script: page.script,
    style: page.style,
    aside: html`<nav class="contents" aria-label="Operations">
<form class="search" role="search" action="${page.path}">
<label for="q" class="hidden">Search operations and fields</label>
<input type="search" id="q" name="q" value="${sought}" placeholder="Search operations, fields" autocomplete="off" spellcheck="false" aria-keyshortcuts="/">
</form>
<p class="quiet" id="found" role="status"></p>
<details><summary>All operations</summary>
${contents}
</details>
</nav>`,
    body: html`${
      sought === ''
        ? html`${introduction}
<p>For programs: <a href="${page.document}">the OpenAPI document</a>.</p>`
        : html`<p class="notice" role="status">${isEmpty ? 'Nothing here has' : 'Only what has'} all of <strong>${sought}</strong>. <a href="${page.path}">Show everything</a></p>`
    }
${credentialBox(page.credential, csrf)}
${content}`,
    // The header of a session has its token.
    headers: viewer === null ? { 'cache-control': 'no-cache' } : {},
  })
}

const SOCKET_ORIGIN = ORIGIN.replace('http', 'ws')

/** Where a person says with which credential operations are tried. */
const credentialBox = (
  credential: string,
  csrf: string | null,
): Html => html`<form class="credential" autocomplete="off"${csrf !== null && html` data-csrf="${csrf}"`}>
<label for="credential">${credential} to try operations with</label>
<input type="password" id="credential" autocomplete="off" spellcheck="false"${csrf !== null && html` placeholder="not needed: your session is used"`}>
<p class="quiet">${csrf === null ? 'The page forgets it when you leave.' : 'You are signed in. A key that you type in is used instead of your session, and the page forgets it when you leave.'}</p>
</form>`
