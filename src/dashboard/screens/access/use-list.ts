import { useCallback, useEffect, useState } from 'preact/hooks'
import { useDashboard } from '../../dashboard.ts'

/** A list that the live streams do not carry. */
export interface LookedUp<Value> {
  /** Null until it is known. */
  readonly list: readonly Value[] | Error | null
  readonly load: () => Promise<void>
}

/** Loads a list, and again when changes may have been missed and when the person comes back to the page. */
export function useList<Value>(read: () => Promise<readonly Value[]>): LookedUp<Value> {
  const { changes } = useDashboard()
  const [list, setList] = useState<readonly Value[] | Error | null>(null)
  const load = useCallback(async () => {
    setList(await read().catch((error: Error) => error))
  }, [read])
  useEffect(() => {
    const loadIfShown = (): void => {
      if (!document.hidden) void load()
    }
    void load()
    document.addEventListener('visibilitychange', loadIfShown)
    const unsubscribe = changes.onGap(() => void load())
    return () => {
      document.removeEventListener('visibilitychange', loadIfShown)
      unsubscribe()
    }
  }, [changes, load])
  return { list, load }
}
