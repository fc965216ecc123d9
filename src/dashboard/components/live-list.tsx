import { useEffect, useState } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'
import { Button } from './button.tsx'

/** What a live list shows, and how it is held still and set going. */
export interface Held<Item> {
  /** The shown items: while the list is held, those from the time at which that began. */
  readonly shown: readonly Item[]
  /** The number of items that came while it is held. */
  readonly fresh: number
  readonly isHeld: boolean
  hold(): void
  resume(): void
  /** Takes whether the list is scrolled to its newest item: if not, it is held. */
  onFollow(isAtNewest: boolean): void
}

/** A list that is held, with the keys of its items. */
interface Snapshot<Item> {
  readonly items: readonly Item[]
  readonly keys: ReadonlySet<string>
  /** Whether a person asked for it, and did not only scroll. */
  readonly isAsked: boolean
}

/**
 * Holds a live list still while a person reads: scrolled away from its newest item, or by the key `p`.
 *
 * @param scope the filter of the list: another filter ends the hold
 * @param keyOf changes with the item if a change of it counts as new
 */
export function useHeld<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  scope: string,
): Held<Item> {
  const { shortcuts } = useDashboard()
  const [snapshot, setSnapshot] = useState<Snapshot<Item> | null>(null)
  const take = (isAsked: boolean): void =>
    setSnapshot((held) => held ?? { items, keys: new Set(items.map(keyOf)), isAsked })
  const resume = (): void => setSnapshot(null)
  useEffect(resume, [scope])
  useEffect(() =>
    shortcuts.add(
      snapshot
        ? { keys: 'p', label: 'Go on with the live list', run: resume }
        : { keys: 'p', label: 'Pause the live list', run: () => take(true) },
    ),
  )
  return {
    shown: snapshot?.items ?? items,
    fresh: snapshot ? items.filter((item) => !snapshot.keys.has(keyOf(item))).length : 0,
    isHeld: snapshot !== null,
    hold: () => take(true),
    resume,
    onFollow: (isAtNewest) => {
      if (!isAtNewest) take(false)
      else setSnapshot((held) => (held?.isAsked ? held : null))
    },
  }
}

/** Says that a live list is held and how much came since, and sets it going again; else offers to hold it. */
export const HoldButton = ({ held }: { held: Held<unknown> }) => (
  <Button
    look={held.isHeld ? 'primary' : 'plain'}
    icon={held.isHeld ? 'play' : 'pause'}
    onClick={held.isHeld ? held.resume : held.hold}
  >
    {held.isHeld ? `Paused · ${held.fresh} new` : 'Pause'}
  </Button>
)
