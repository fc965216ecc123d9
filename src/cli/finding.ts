/** The result of one examination. */
export interface Finding {
  /** The examined thing, in a word or two. */
  name: string
  /**
   * `ok`: present; `absent`: missing, and berth works without it; `failed`: berth cannot run, or not as configured.
   */
  status: 'ok' | 'absent' | 'failed'
  /** The result, in words. */
  detail: string
  /** The remedy for a person. */
  remedy?: string
}
