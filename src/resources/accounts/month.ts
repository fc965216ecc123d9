/**
 * Returns the calendar month (UTC) of a time, such as `2030-01`.
 *
 * @param ms milliseconds since 1970
 */
export function monthOf(ms: number): string {
  const date = new Date(ms)
  return `${date.getUTCFullYear()}-${String(date.getUTCMonth() + 1).padStart(2, '0')}`
}

/**
 * Returns the end of the month of a time: the first moment of the next month.
 *
 * @param ms milliseconds since 1970
 */
export function monthEnd(ms: number): number {
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
}
