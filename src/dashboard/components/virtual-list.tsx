import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'

/** Properties of a virtual list. */
export interface VirtualListProps<Item> {
  items: readonly Item[]
  /** Height of a row in pixels; of one that may be higher, the usual one. */
  rowHeight: number
  /** Whether rows differ in height, so that each has to be measured. */
  isMeasured?: boolean
  keyOf: (item: Item) => string | number
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

/** A list that draws only the rows in view, so that its length costs nothing. */
export function VirtualList<Item>(props: VirtualListProps<Item>) {
  const {
    items,
    rowHeight,
    isMeasured = false,
    keyOf,
    label,
    isFollowing = false,
    onFollow,
    edge = 'end',
    current = -1,
    children,
  } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [, draw] = useReducer((count: number) => count + 1, 0)
  const options: VirtualizerOptions<HTMLDivElement, HTMLElement> = {
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => keyOf(items[index] as Item),
    overscan: 12,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw(undefined as never),
  }
  const [virtualizer] = useState(() => new Virtualizer(options))
  virtualizer.setOptions(options)
  useEffect(() => {
    const unmount = virtualizer._didMount()
    virtualizer._willUpdate()
    draw(undefined as never)
    return unmount
  }, [virtualizer])
  useEffect(() => {
    virtualizer._willUpdate()
    if (isFollowing && edge === 'end' && items.length > 0)
      virtualizer.scrollToIndex(items.length - 1, { align: 'end' })
  })
  // At once: an effect that runs later would undo what a person has scrolled since.
  useLayoutEffect(() => {
    if (isFollowing && edge === 'start' && (virtualizer.scrollOffset ?? 0) > 0) virtualizer.scrollToOffset(0)
  })
  useEffect(() => {
    if (current >= 0) virtualizer.scrollToIndex(current, { align: 'auto' })
  }, [virtualizer, current])
  const onScroll = (): void => {
    const element = scroller.current
    if (!element || !onFollow) return
    const away =
      edge === 'start' ? element.scrollTop : element.scrollHeight - element.scrollTop - element.clientHeight
    onFollow(away < NEAR_END)
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
    <section class="virtual" ref={scroller} onScroll={onScroll} aria-label={label} tabIndex={0}>
      <ul style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => (
          <li
            key={key}
            data-index={index}
            aria-setsize={items.length}
            aria-posinset={index + 1}
            ref={isMeasured ? (element) => virtualizer.measureElement(element) : null}
            style={{ transform: `translateY(${start}px)` }}
          >
            {children(items[index] as Item, index)}
          </li>
        ))}
      </ul>
    </section>
  )
}
