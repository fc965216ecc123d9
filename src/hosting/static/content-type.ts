import { lookup } from 'mrmime'

/** Types beside `text/…` whose content is text, too. */
const TEXTUAL =
  /^(?:text\/|application\/(?:json|xml|manifest\+json|ld\+json|javascript|xhtml\+xml|rss\+xml|atom\+xml)|image\/svg\+xml)/

/** The Content-Type of a file by its name; text is taken for UTF-8. */
export function contentType(path: string): string {
  const type = lookup(path) ?? 'application/octet-stream'
  return TEXTUAL.test(type) ? `${type}; charset=utf-8` : type
}
