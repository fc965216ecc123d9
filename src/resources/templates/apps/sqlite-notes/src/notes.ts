import type { Database } from 'bun:sqlite'

export interface Note {
  id: number
  title: string
  body: string
  pinned: boolean
  /** Milliseconds since 1970. */
  created_at: number
  updated_at: number
}

/** What a caller says of a note. */
export type NoteFields = Pick<Note, 'title' | 'body' | 'pinned'>

type Row = Omit<Note, 'pinned'> & { pinned: number }

const toNote = (row: Row): Note => ({ ...row, pinned: row.pinned === 1 })

/** Notes in a database. */
export class Notes {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Pinned ones first, then by their last change; with a search, those that contain it. */
  list(search = ''): Note[] {
    const pattern = `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`
    return this.#database
      .query<Row, { pattern: string }>(
        `SELECT * FROM notes WHERE title LIKE $pattern ESCAPE '\\' OR body LIKE $pattern ESCAPE '\\'
         ORDER BY pinned DESC, updated_at DESC, id DESC`,
      )
      .all({ pattern })
      .map(toNote)
  }

  count(): number {
    return this.#database.query<{ n: number }, []>('SELECT count(*) AS n FROM notes').get()?.n ?? 0
  }

  get(id: number): Note | null {
    const row = this.#database.query<Row, { id: number }>('SELECT * FROM notes WHERE id = $id').get({ id })
    return row && toNote(row)
  }

  create(fields: NoteFields): Note {
    const row = this.#database
      .query<Row, NoteFields & { now: number }>(
        `INSERT INTO notes (title, body, pinned, created_at, updated_at)
         VALUES ($title, $body, $pinned, $now, $now) RETURNING *`,
      )
      .get({ ...fields, now: Date.now() })
    if (!row) throw new Error('The note was not written.')
    return toNote(row)
  }

  /** The changed note, or null where there is none. */
  update(id: number, fields: NoteFields): Note | null {
    const row = this.#database
      .query<Row, NoteFields & { id: number; now: number }>(
        `UPDATE notes SET title = $title, body = $body, pinned = $pinned, updated_at = $now
         WHERE id = $id RETURNING *`,
      )
      .get({ ...fields, id, now: Date.now() })
    return row && toNote(row)
  }

  /** Whether there was one. */
  remove(id: number): boolean {
    return this.#database.query('DELETE FROM notes WHERE id = $id').run({ id }).changes === 1
  }
}
