import { type Html, html } from '../pages/html.ts'
import { destinationOf } from './redirect-uri.ts'

/** Where the answers that go to a redirect URI arrive, in words. */
export function destinationWords(uri: string): Html {
  const { kind, name } = destinationOf(uri)
  if (kind === 'machine') return html`<strong>${name}</strong>, a program on your machine`
  if (kind === 'app') return html`the app on your machine that opens <strong>${name}</strong> addresses`
  return html`<strong>${name}</strong>, on the web`
}
