/** One thing that was looked at. */
export interface Finding {
  /** What was looked at, in a word or two. */
  name: string
  /** `ok`: it is there; `absent`: berth does without; `failed`: berth cannot run, or not as configured. */
  status: 'ok' | 'absent' | 'failed'
  /** What was found, in words. */
  detail: string
  /** What a person can do about it. */
  remedy?: string
}

/** Something is there. */
export const ok = (name: string, detail: string): Finding => ({ name, status: 'ok', detail })

/** Something is not there, and berth does without it. */
export const absent = (name: string, detail: string, remedy: string): Finding => ({
  name,
  status: 'absent',
  detail,
  remedy,
})

/** Something is not there, and without it berth cannot run as configured. */
export const failed = (name: string, detail: string, remedy: string): Finding => ({
  name,
  status: 'failed',
  detail,
  remedy,
})
