/** A key, or two keys one after the other (`g s`), with what it does. */
export interface Shortcut {
  readonly keys: string
  /** A key that does the same. */
  readonly also?: string
  readonly label: string
  /** Where the list of keys names it: below the screen, unless it works on all of them. */
  readonly group?: ShortcutGroup
  /** Reports whether it does something now: without a list there is no next row. */
  readonly isUsable?: (key: string) => boolean
  /** Does it. Left out for an action of the browser itself, which is only listed. */
  readonly run?: () => void
}

/** What a shortcut works on: the screen, the whole page, or other screens. */
export type ShortcutGroup = 'screen' | 'page' | 'go'

/** Milliseconds within which the second key of a sequence has to follow. */
const SEQUENCE_MS = 1_000

/** The keys of the page. They do nothing while a person types, or a dialog or a menu is open. */
export class Shortcuts {
  readonly #all = new Map<string, Shortcut[]>()
  #first: { key: string; at: number } | null = null

  /** All shortcuts that work now, each key once: the one that was added last. */
  list(): Shortcut[] {
    return [...this.#all.values()].flatMap((stack) => stack.findLast((one) => isUsable(one)) ?? [])
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
      const { key, timeStamp } = event
      const first = this.#first && timeStamp - this.#first.at < SEQUENCE_MS ? `${this.#first.key} ` : ''
      const shortcut = this.#find(`${first}${key}`) ?? this.#find(key)
      this.#first = shortcut ? null : { key, at: timeStamp }
      if (!shortcut?.run) return
      event.preventDefault()
      shortcut.run()
    })
  }

  #find(keys: string): Shortcut | undefined {
    const own = this.#all.get(keys)?.findLast((one) => isUsable(one, keys))
    return own ?? [...this.#all.values()].flat().findLast((one) => one.also === keys && isUsable(one, keys))
  }
}

const isUsable = (shortcut: Shortcut, key = shortcut.keys): boolean => shortcut.isUsable?.(key) ?? true

/** Reports whether a field, a terminal, an editor, a dialog or a menu receives a key. */
function isTyping({ target }: KeyboardEvent): boolean {
  if (document.querySelector('dialog[open], .menu:popover-open')) return true
  return (
    target instanceof Element &&
    target.closest('input, textarea, select, [contenteditable], .xterm, .cm-editor') !== null
  )
}
