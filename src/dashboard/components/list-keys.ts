import type { Router } from '../router.ts'
import type { Shortcut } from '../store/shortcuts.ts'

/** What lists are made of: rows of tables, entries of the timeline and of the tree of files, cards. */
const ROWS = '.row:not(.head), .entry, .file-row, .card, .deliveries > li, table.plain tbody tr'

/** What a row is opened by, the best first. */
const OPENERS = ['.row-link', 'a.text', 'summary', 'a[href]']

/** What can be done in a row. A row without is only read. */
const ACTIONS = 'a[href], summary, button'

/** Parts beside a list, which may have rows of their own. */
const BESIDE = '.detail, .drawer'

/** The button of a menu. */
const MENU = '[aria-haspopup="menu"]'

/** Returns the keys that move through the list on the screen and open what is selected, in all lists alike. */
export function listKeys(router: Router): Shortcut[] {
  const hasRows = (key: string): boolean => (key.startsWith('Arrow') ? isArrowOfList() : rows().length > 0)
  return [
    { keys: 'j', also: 'ArrowDown', label: 'Next', isUsable: hasRows, run: () => moveBy(router, 1) },
    { keys: 'k', also: 'ArrowUp', label: 'Previous', isUsable: hasRows, run: () => moveBy(router, -1) },
    { keys: 'Enter', label: 'Open what is selected', isUsable: hasRows },
    {
      keys: '.',
      label: 'Actions on what is selected, or on what the screen shows',
      isUsable: () => actionsButton() !== null,
      run: openActions,
    },
  ]
}

/** Returns the address that the selected row leads to; null if there is no such row. */
export function selectedAddress(): string | null {
  const row = currentRow()
  const opener = row && openerOf(row)
  return opener instanceof HTMLAnchorElement ? `${opener.pathname}${opener.search}` : null
}

/** Selects the first row in view of the list on the screen. */
export function selectFirst(): void {
  const [first] = rows().filter(isInView)
  if (first) openerOf(first).focus()
}

/**
 * Selects another row: it gets the focus. One that is shown beside the list (`data-shows`) is shown at once.
 *
 * @param step 1 for the next row, -1 for the one before
 */
function moveBy(router: Router, step: 1 | -1): void {
  const all = rows()
  const current = currentRow()
  const next = current ? all[all.indexOf(current) + step] : all.find(isInView)
  if (!next) return
  const opener = openerOf(next)
  opener.focus()
  next.scrollIntoView({ block: 'nearest' })
  if (opener instanceof HTMLAnchorElement && 'shows' in opener.dataset)
    router.replace(`${opener.pathname}${opener.search}`)
}

/** Opens the menu of the selected row or of the screen. Without a menu, its first button gets the focus. */
function openActions(): void {
  const button = actionsButton()
  // When the menu is closed, the focus is where it was.
  if (button?.matches(MENU)) button.click()
  else button?.focus()
}

function actionsButton(): HTMLElement | null {
  // What is shown beside a list is its selected row.
  const places = [currentRow(), ...document.querySelectorAll('#main .detail, #main .title-row')]
  for (const place of places) {
    const button =
      place?.querySelector<HTMLElement>(MENU) ??
      place?.querySelector<HTMLElement>(':is(button:not(.id button), a.button):not(:disabled)')
    if (button) return button
  }
  return null
}

/** Returns the rows of the screen that can be opened, in order; those beside a list only if the focus is there. */
function rows(): HTMLElement[] {
  const place = document.activeElement?.closest(BESIDE) ?? document.getElementById('main')
  const all = [...(place?.querySelectorAll<HTMLElement>(ROWS) ?? [])]
  return all.filter(
    (row) =>
      row.closest(BESIDE) === place?.closest(BESIDE) &&
      row.checkVisibility() &&
      (row.matches(ACTIONS) || row.querySelector(ACTIONS) !== null),
  )
}

/** Returns the row that has the focus, else the one that is shown beside the list. */
const currentRow = (): HTMLElement | null =>
  document.activeElement?.closest<HTMLElement>(ROWS) ??
  document.querySelector<HTMLElement>('#main .row.current')

/** Returns the element that gets the focus when a row is selected: its opener, else the row itself. */
function openerOf(row: HTMLElement): HTMLElement {
  for (const selector of OPENERS) {
    const opener = row.querySelector<HTMLElement>(selector)
    if (opener) return opener
  }
  if (!row.matches('button')) row.tabIndex = -1
  return row
}

/** Reports whether a row is not scrolled out of its list. */
function isInView(row: HTMLElement): boolean {
  const { top } = row.getBoundingClientRect()
  const list = row.closest('.virtual') ?? document.getElementById('main')
  return top >= (list?.getBoundingClientRect().top ?? 0) - 1
}

/** Reports whether the arrow keys go to a list: elsewhere they scroll. */
function isArrowOfList(): boolean {
  const { activeElement: active } = document
  if (active?.closest(ROWS)) return true
  const isNowhere = active === null || active === document.body || active.matches('.virtual, #main, h1')
  return isNowhere && rows().some((row) => row.closest('.virtual') !== null)
}
