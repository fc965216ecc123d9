const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** The units of a duration, as a part of a regular expression. */
export const DURATION_UNITS = Object.keys(UNIT_MS).join('|')

const DURATION = new RegExp(`^(\\d+(?:\\.\\d+)?)(${DURATION_UNITS})?$`)

/**
 * Parses a duration such as `500ms`, `10s`, `15m`, `2h`, `1d`; a bare number is seconds. Returns milliseconds, or
 * null if the text is not a duration.
 */
export function parseDuration(text: string): number | null {
  const match = DURATION.exec(text.trim())
  if (!match?.[1]) return null
  const unit = (match[2] ?? 's') as keyof typeof UNIT_MS
  return Math.round(Number(match[1]) * UNIT_MS[unit])
}
