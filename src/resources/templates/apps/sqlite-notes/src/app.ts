import { join } from 'node:path'
import { parseFields } from './fields.ts'
import { errorResponse, HttpError, methods, readJson } from './http.ts'
import type { Note, Notes } from './notes.ts'

const pages = join(import.meta.dir, '../public')

/** The page may load what is its own, and nothing else. */
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"

/** A file of public/, read anew for each request. */
const file = (name: string) =>
  methods({
    GET: () =>
      new Response(Bun.file(join(pages, name)), {
        headers: {
          'cache-control': 'no-cache',
          'content-security-policy': POLICY,
          'x-content-type-options': 'nosniff',
        },
      }),
  })

interface AppOptions {
  hostname: string
  /** 0 takes any port that is free. */
  port: number
  notes: Notes
}

/** Starts the app: the page and the API that it uses. */
export function createApp({ hostname, port, notes }: AppOptions) {
  const find = (id = ''): Note => {
    const note = /^\d{1,15}$/.test(id) ? notes.get(Number(id)) : null
    if (!note) throw new HttpError(404, 'not_found', `There is no note ${JSON.stringify(id)}.`)
    return note
  }

  return Bun.serve({
    hostname,
    port,
    // Bodies over this are refused before they are read.
    maxRequestBodySize: 1024 * 1024,
    routes: {
      '/': file('index.html'),
      '/app.js': file('app.js'),
      '/style.css': file('style.css'),
      '/icon.svg': file('icon.svg'),
      '/health': methods({ GET: () => ({ status: 'ok', notes: notes.count() }) }),
      '/api/notes': methods({
        GET: (request) => ({ notes: notes.list(new URL(request.url).searchParams.get('search') ?? '') }),
        POST: async (request) => {
          const note = notes.create(parseFields(await readJson(request)))
          return Response.json(note, { status: 201, headers: { location: `/api/notes/${note.id}` } })
        },
      }),
      '/api/notes/:id': methods({
        GET: (_request, { id }) => find(id),
        PATCH: async (request, { id }) => {
          const note = find(id)
          return notes.update(note.id, parseFields(await readJson(request), note))
        },
        DELETE: (_request, { id }) => {
          notes.remove(find(id).id)
          return new Response(null, { status: 204 })
        },
      }),
    },
    fetch(request) {
      const { pathname } = new URL(request.url)
      return errorResponse(new HttpError(404, 'not_found', `There is nothing at ${pathname}.`))
    },
    error: errorResponse,
  })
}
