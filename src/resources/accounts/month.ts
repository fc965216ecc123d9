/** The calendar month in UTC that a moment lies in, such as `2030-01`. */
export function monthOf(ms: number): string {
  const date = new Date(ms)
  return `${date.getUTCFullYear()}-${String(date.getUTCMonth() + 1).padStart(2, '0')}`
}

/** The moment at which the month that `ms` lies in is over: the first of the next. */
export function monthEnd(ms: number): number {
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
}
