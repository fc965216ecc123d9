import { HttpError } from './http.ts'
import type { NoteFields } from './notes.ts'

const MAX_TITLE = 200
const MAX_BODY = 100_000

/** A note of a request's body; what it leaves out is as in `base`. @throws HttpError 400 that names the field */
export function parseFields(body: unknown, base?: NoteFields): NoteFields {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('Send a JSON object.')
  const {
    title = base?.title,
    body: text = base?.body ?? '',
    pinned = base?.pinned ?? false,
  } = body as Record<string, unknown>
  if (typeof title !== 'string' || title.trim() === '' || title.length > MAX_TITLE) {
    throw invalid(`"title" is a text of 1 to ${MAX_TITLE} characters.`)
  }
  if (typeof text !== 'string' || text.length > MAX_BODY) {
    throw invalid(`"body" is a text of at most ${MAX_BODY} characters.`)
  }
  if (typeof pinned !== 'boolean') throw invalid('"pinned" is true or false.')
  return { title: title.trim(), body: text, pinned }
}

const invalid = (message: string) => new HttpError(400, 'bad_request', message)
