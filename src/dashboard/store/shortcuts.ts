/** A key, or two keys one after the other (`g s`), with what it does. */
export interface Shortcut {
  readonly keys: string
  readonly label: string
  readonly run: () => void
}

/** Milliseconds within which the second key of a sequence has to follow. */
const SEQUENCE_MS = 1_000

/** The keys of the page. They do nothing while a person types, or a dialog is open. */
export class Shortcuts {
  readonly #all = new Map<string, Shortcut[]>()
  #first: { key: string; at: number } | null = null

  /** All shortcuts that work now, each key once: the one that was added last. */
  list(): Shortcut[] {
    return [...this.#all.values()].flatMap((stack) => stack.at(-1) ?? [])
  }

  /**
   * Adds shortcuts. One with the same keys is hidden while these are there.
   *
   * @returns a function that removes them
   */
  add(...shortcuts: readonly Shortcut[]): () => void {
    for (const one of shortcuts) this.#all.set(one.keys, [...(this.#all.get(one.keys) ?? []), one])
    return () => {
      for (const one of shortcuts) {
        const rest = (this.#all.get(one.keys) ?? []).filter((other) => other !== one)
        if (rest.length === 0) this.#all.delete(one.keys)
        else this.#all.set(one.keys, rest)
      }
    }
  }

  /** Listens to the keyboard. */
  start(): void {
    document.addEventListener('keydown', (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return
      const first = this.#first && event.timeStamp - this.#first.at < SEQUENCE_MS ? `${this.#first.key} ` : ''
      const shortcut = this.#all.get(`${first}${event.key}`)?.at(-1) ?? this.#all.get(event.key)?.at(-1)
      this.#first = shortcut ? null : { key: event.key, at: event.timeStamp }
      if (!shortcut) return
      event.preventDefault()
      shortcut.run()
    })
  }
}

/** Reports whether a key goes to a field, a terminal, an editor or a dialog. */
function isTyping({ target }: KeyboardEvent): boolean {
  if (document.querySelector('dialog[open]')) return true
  return (
    target instanceof Element &&
    target.closest('input, textarea, select, [contenteditable], .xterm, .cm-editor') !== null
  )
}
