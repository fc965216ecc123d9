import { createHmac } from 'node:crypto'
import { isSameText } from '../../runtime/secret.ts'
import { type Html, html } from '../pages/html.ts'
import { quotedName } from '../pages/plain-name.ts'
import type { SignedIn } from '../session/visits.ts'

/** What was done, by the word that stands for it in the address behind it. */
const DONE = {
  'key-deleted': 'The key is deleted. It opens nothing any more.',
  'client-revoked': 'The program is not let in any more.',
  'browser-signed-out': 'The browser is signed out.',
  'browsers-signed-out': 'All other browsers are signed out.',
} as const

/** A word for what was done. */
export type Done = keyof typeof DONE

/** The query behind which the page says what was done. @param program what the program calls itself whose access ended */
export function noticeQuery(what: Done, visit: SignedIn, program?: string): string {
  const named = program === undefined ? {} : { program, proof: proofOf(program, visit) }
  return `?${new URLSearchParams({ done: what, ...named })}`
}

/** What the page says was done; undefined for nothing, or nothing that berth says. */
export function noticeOf(query: URLSearchParams, visit: SignedIn): Html | undefined {
  const word = query.get('done') ?? ''
  if (!Object.hasOwn(DONE, word)) return undefined
  const program = query.get('program')
  // Whoever makes a link to this page puts no words of theirs on it.
  const isOwn = program !== null && isSameText(query.get('proof') ?? '', proofOf(program, visit))
  if (word === 'client-revoked' && isOwn) {
    return html`The program ${quotedName(program)} is not let in any more.`
  }
  return html`${DONE[word as Done]}`
}

/** Shows that berth itself sent the browser of the session to a name. */
const proofOf = (program: string, { csrf }: SignedIn): string =>
  createHmac('sha256', csrf).update(`ended ${program}`).digest('base64url')
