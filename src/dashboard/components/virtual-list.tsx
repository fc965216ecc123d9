import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { type RowKey, RowPositions } from './row-positions.ts'

/** Properties of a virtual list. */
interface VirtualListProps<Item> {
  items: readonly Item[]
  /** Height of a row in pixels; of one that may be higher, the usual one. */
  rowHeight: number
  /** Whether rows differ in height, so that each has to be measured. */
  isMeasured?: boolean
  /**
   * Whether the elements of a row that has left the view may show another one, which is less work than new ones. Rows
   * must keep nothing of their own then, such as an open menu.
   */
  isReused?: boolean
  keyOf: (item: Item) => RowKey
  children: (item: Item, index: number) => ComponentChildren
  /** Name for screen readers. */
  label: string
  /** Keeps the end in view as items are added, until a person scrolls up. */
  isFollowing?: boolean
  onFollow?: (isFollowing: boolean) => void
  /** The end at which items are added, which is followed; by default the last row. */
  edge?: 'start' | 'end'
  /** The row to scroll into view, whenever it is another one; -1 for none. */
  current?: number
}

/** Pixels from the end within which a list still counts as scrolled to it. */
const NEAR_END = 24

/** Rows that are drawn above and below those in view. */
const MARGIN = 12

/** A list that draws only the rows in view, so that its length costs nothing. */
export function VirtualList<Item>(props: VirtualListProps<Item>) {
  const { items, rowHeight, isMeasured = false, isReused = false, keyOf, label, children } = props
  const { isFollowing = false, onFollow, edge = 'end', current = -1 } = props
  const scroller = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLUListElement>(null)
  const [, draw] = useReducer<number, void>((count) => count + 1, 0)
  const [height, setHeight] = useState(() => innerHeight)
  const top = useRef(0)
  const positions = useMemo(() => new RowPositions(rowHeight), [rowHeight])
  const keyAt = (index: number): RowKey => keyOf(items[index] as Item)
  /** Where the list is to be scrolled to; null to leave it where it is. */
  const wanted = useRef<number | null>(null)
  /** The first row in view, by which a list that nobody follows stays where it is. */
  const reading = useRef<{ index: number; key: RowKey; below: number } | null>(null)
  useMemo(() => {
    positions.update(items.length, keyAt)
    const { index, key, below } = reading.current ?? { index: -1, key: '', below: 0 }
    if (edge === 'start' || !onFollow || isFollowing) return
    // Rows go at the other end.
    for (let now = Math.min(index, items.length - 1); now >= 0; now -= 1) {
      if (keyAt(now) !== key) continue
      wanted.current = positions.start(now) + below
      break
    }
  }, [positions, items])
  const total = positions.total
  if (isFollowing) wanted.current = edge === 'start' ? 0 : Math.max(0, total - height)
  const before = top.current
  top.current = wanted.current ?? top.current
  const [first, end] = rowsAt(positions, items.length, top.current, height)
  const drawn = useRef([first, end])
  drawn.current = [first, end]
  const keys = Array.from({ length: end - first }, (_, row) => keyAt(first + row))
  const slots = useMemo(() => new Slots(), [])
  const slotOf = isReused ? slots.assign(keys, focusedSlot(list.current)) : null

  /** Reads where the list is scrolled to, and draws it again if other rows are in view. */
  const look = (): void => {
    const element = scroller.current
    if (!element) return
    top.current = element.scrollTop
    const [from, to] = rowsAt(positions, items.length, top.current, height)
    if (from !== drawn.current[0] || to !== drawn.current[1]) draw()
    const index = positions.at(top.current)
    const below = top.current - positions.start(index)
    reading.current = index < items.length ? { index, key: keyAt(index), below } : null
  }
  const scrollTo = (pixel: number): void => {
    if (scroller.current) scroller.current.scrollTop = pixel
    look()
  }
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element) return
    setHeight(element.clientHeight)
    const sizes = new ResizeObserver(() => setHeight(element.clientHeight))
    sizes.observe(element)
    return () => sizes.disconnect()
  }, [])
  useMeasured(isMeasured ? list : null, (heights) => {
    const above = positions.at(top.current)
    let moved = 0
    let movedAbove = 0
    for (const { index, key, pixels } of heights) {
      if (index >= items.length || String(keyAt(index)) !== key) continue
      const by = positions.measure(index, keyAt(index), pixels)
      moved += Math.abs(by)
      if (index < above) movedAbove += by
    }
    // What a person reads stays where it is.
    if (!isFollowing && movedAbove !== 0) wanted.current = top.current + movedAbove
    if (moved > 0) draw()
  })
  // At once: an effect that runs later would undo what a person has scrolled since.
  useLayoutEffect(() => {
    const [element, pixel] = [scroller.current, wanted.current]
    wanted.current = null
    if (!element || pixel === null || pixel === before) return
    // The scroll event, which is still to come, reports it.
    const isScrolledUp = edge === 'end' && element.scrollTop < Math.min(before, pixel) - NEAR_END
    if (!isScrolledUp) element.scrollTop = isFollowing && edge === 'end' ? total : pixel
  })
  useEffect(() => {
    if (current < 0) return
    const [from, to] = [positions.start(current), positions.start(current + 1)]
    if (from < top.current) scrollTo(from)
    else if (to > top.current + height) scrollTo(to - height)
  }, [current])
  const onScroll = (): void => {
    look()
    const element = scroller.current
    if (!element || !onFollow) return
    const away =
      edge === 'start' ? element.scrollTop : element.scrollHeight - element.scrollTop - element.clientHeight
    onFollow(away < NEAR_END)
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <section class="virtual" ref={scroller} onScroll={onScroll} aria-label={label} tabIndex={0}>
      <ul ref={list} style={{ height: `${total}px` }}>
        {keys.map((key, row) => (
          <li
            key={slotOf ? slotOf[row] : key}
            data-index={first + row}
            data-key={key}
            data-slot={slotOf?.[row]}
            aria-setsize={items.length}
            aria-posinset={first + row + 1}
            style={{ transform: `translateY(${positions.start(first + row)}px)` }}
          >
            {children(items[first + row] as Item, first + row)}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Returns the rows to draw: the first, and the one after the last. */
function rowsAt(
  positions: RowPositions,
  count: number,
  top: number,
  height: number,
): readonly [number, number] {
  if (count === 0) return [0, 0]
  // Those at the end, if the list has become shorter than it was scrolled.
  const from = Math.max(0, Math.min(top, positions.total - height))
  return [Math.max(0, positions.at(from) - MARGIN), Math.min(count, positions.at(from + height) + 1 + MARGIN)]
}

/** Reuses the elements of rows that have left the view for rows that enter it. */
class Slots {
  #byKey = new Map<RowKey, number>()
  #count = 0

  /**
   * Returns the slots of rows. A row keeps its own.
   *
   * @param focused the slot that has the focus, which no other row may get; -1 for none
   */
  assign(keys: readonly RowKey[], focused: number): number[] {
    const kept = new Set(keys)
    const free = [...this.#byKey].flatMap(([key, slot]) => (kept.has(key) || slot === focused ? [] : slot))
    const byKey = new Map<RowKey, number>()
    for (const key of keys) byKey.set(key, this.#byKey.get(key) ?? free.pop() ?? this.#new())
    this.#byKey = byKey
    return keys.map((key) => byKey.get(key) ?? 0)
  }

  #new(): number {
    this.#count += 1
    return this.#count
  }
}

/** Returns the slot of the row that has the focus; -1 if none has. */
function focusedSlot(list: Element | null): number {
  const row = list?.contains(document.activeElement) ? document.activeElement?.closest('li') : null
  return Number(row?.dataset.slot ?? -1)
}

/** The height of a row that is drawn. */
interface RowHeight {
  readonly index: number
  readonly key: string
  readonly pixels: number
}

/**
 * Calls `onHeights` with the heights of the rows of a list when they are drawn and when they change.
 *
 * @param list null to measure none
 */
function useMeasured(
  list: { readonly current: HTMLElement | null } | null,
  onHeights: (heights: readonly RowHeight[]) => void,
): void {
  const latest = useRef(onHeights)
  latest.current = onHeights
  const observed = useMemo(() => new Set<Element>(), [])
  // The observer is called before the page is painted, and asks for no layout of its own.
  const observer = useMemo(
    () =>
      new ResizeObserver((entries) =>
        latest.current(
          entries.flatMap(({ target, borderBoxSize }) => {
            const { index, key = '' } = (target as HTMLElement).dataset
            const pixels = borderBoxSize[0]?.blockSize ?? 0
            return target.isConnected ? { index: Number(index), key, pixels } : []
          }),
        ),
      ),
    [],
  )
  useEffect(() => () => observer.disconnect(), [observer])
  useLayoutEffect(() => {
    if (!list?.current) return
    for (const row of observed) {
      if (row.isConnected) continue
      observer.unobserve(row)
      observed.delete(row)
    }
    for (const row of list.current.children) {
      if (observed.has(row)) continue
      observed.add(row)
      observer.observe(row)
    }
  })
}
