import { type ReadonlySignal, signal } from '@preact/signals'
import type { ChangeStream } from '../api/changes.ts'

/** A text that was edited and is not saved. */
interface Draft {
  readonly text: string
  /** The file's text when the editing began. */
  readonly original: string
}

/** Where a person was in a tree of files. */
interface FilesPlace {
  /** The file that was open; empty for none. */
  readonly file: string
  readonly openFolders: ReadonlySet<string>
}

/**
 * What a person does with files: texts that are not saved, and where they were in each tree. It stays while other screens are
 * shown, and is lost with the page, which asks before it is left.
 */
export class FileWork {
  readonly #drafts = new Map<string, Draft>()
  readonly #edited = signal<ReadonlySet<string>>(new Set())
  readonly #places = new Map<string, FilesPlace>()

  /** Asks before the page is left with drafts, and forgets those of servers that are deleted. */
  start(changes: ChangeStream): void {
    addEventListener('beforeunload', (event) => {
      if (this.#drafts.size > 0) event.preventDefault()
    })
    changes.subscribe('server', ({ id, value }) => {
      if (value !== null) return
      for (const key of [...this.#drafts.keys()]) if (key.startsWith(`${id}/`)) this.#drafts.delete(key)
      this.#show()
    })
  }

  /** Files with drafts: each the server's id, a slash and the path. */
  get edited(): ReadonlySignal<ReadonlySet<string>> {
    return this.#edited
  }

  /** Returns the draft of a file, or null. */
  draft(serverId: string, path: string): Draft | null {
    return this.#drafts.get(`${serverId}/${path}`) ?? null
  }

  /** Keeps a draft, or with null forgets it. */
  setDraft(serverId: string, path: string, draft: Draft | null): void {
    const key = `${serverId}/${path}`
    if (draft === null) this.#drafts.delete(key)
    else this.#drafts.set(key, draft)
    this.#show()
  }

  /** Returns where the person was in the files below a directory of a server, or null at first. */
  place(serverId: string, root: string): FilesPlace | null {
    return this.#places.get(`${serverId}/${root}`) ?? null
  }

  /** Keeps where the person is. */
  setPlace(serverId: string, root: string, place: FilesPlace): void {
    this.#places.set(`${serverId}/${root}`, place)
  }

  /** Tells of files that came or went; not of each key that is typed. */
  #show(): void {
    const known = this.#edited.peek()
    if (known.size === this.#drafts.size && [...known].every((key) => this.#drafts.has(key))) return
    this.#edited.value = new Set(this.#drafts.keys())
  }
}
