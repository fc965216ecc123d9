import { useEffect, useRef, useState } from 'preact/hooks'
import type { LiveChange } from '../api/changes.ts'
import { useDashboard } from '../dashboard.ts'

/** What was loaded last, or why it could not be. */
export interface Live<Value> {
  /** Null until something was loaded. */
  readonly value: Value | Error | null
  /** Loads it again. */
  readonly load: () => void
  /** Shows the value of a response to a change. Responses to earlier loads are dropped. */
  readonly show: (value: Value) => void
}

/**
 * Loads a value that is not a list of objects: at once, when a change is about it, and after a gap. Responses may arrive in
 * another order than their requests: one that is older than what is shown is dropped.
 *
 * @param type the type of the changes
 * @param isAbout whether a change of the type is about it
 * @param dependencies the values that `load` and `isAbout` use: it starts again when they change
 */
export function useLive<Value>(
  load: () => Promise<Value>,
  type: string,
  isAbout: (change: LiveChange) => boolean,
  dependencies: readonly unknown[],
): Live<Value> {
  const { changes } = useDashboard()
  const [value, setValue] = useState<Value | Error | null>(null)
  const asked = useRef(0)
  const shown = useRef(0)
  const showAs = (number: number, next: Value | Error): void => {
    if (number < shown.current) return
    shown.current = number
    setValue(next)
  }
  const read = (): void => {
    asked.current += 1
    const number = asked.current
    load().then(
      (next) => showAs(number, next),
      (error: unknown) => showAs(number, error instanceof Error ? error : new Error(String(error))),
    )
  }
  useEffect(() => {
    read()
    const ends = [changes.subscribe(type, (change) => isAbout(change) && read()), changes.onGap(read)]
    return () => {
      for (const end of ends) end()
      // What was asked for is about something else.
      asked.current += 1
      shown.current = asked.current
    }
  }, [changes, type, ...dependencies])
  const show = (next: Value): void => {
    asked.current += 1
    showAs(asked.current, next)
  }
  return { value, load: read, show }
}
