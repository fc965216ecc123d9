import { BerthError } from '../../errors.ts'
import { type Html, html } from './html.ts'
import { pageAnswer } from './page.ts'

/** A request for a page that cannot be answered: what is said of it, and what helps. */
export class PageFailure extends Error {
  override readonly name = 'PageFailure'

  /** @param help what the person can do, as HTML */
  constructor(
    readonly status: number,
    readonly title: string,
    readonly help: Html,
  ) {
    super(title)
  }
}

/** The page for what a page's handler throws; null for an unforeseen fault. */
export function failurePage(error: unknown): Response | null {
  if (error instanceof PageFailure) {
    const { status, title, help } = error
    return pageAnswer({ status, title, body: help, isNarrow: true })
  }
  if (error instanceof BerthError && error.code === 'payload_too_large') {
    // What a person sends from a page comes in one piece.
    return pageOf(
      error.status,
      'That was too much',
      'What was sent is larger than a form of these pages can be. Nothing was changed.',
    )
  }
  if (error instanceof BerthError && error.code !== 'internal_error') {
    return pageOf(error.status, 'That did not work', error.message)
  }
  return null
}

/** What programs alone ask, whatever they say they take. */
const FOR_PROGRAMS = /^\/(?:\.well-known\/|oauth\/(?!authorize)|cli\/token)/

/** The page for any other failure, where a browser asked for one; programs get the body that they know. */
export function pageForBrowsers(
  { code, status, message }: BerthError,
  request: Request,
  path: string,
): Response | null {
  if (!/\btext\/html\b/.test(request.headers.get('accept') ?? '')) return null
  if (FOR_PROGRAMS.test(path)) return null
  return code === 'not_found'
    ? pageOf(status, 'There is no such page', 'Nothing is here, or not any more.')
    : pageOf(status, 'That did not work', message)
}

const pageOf = (status: number, title: string, message: string): Response =>
  pageAnswer({
    status,
    title,
    body: html`<p class="notice failure">${message}</p>
<p><a href="/">Go to the start page</a></p>`,
    isNarrow: true,
  })
