/** What the launcher is told on descriptor 4, as JSON. */
export interface LandlockPlan {
  /** The program that takes the launcher's place, with its arguments. */
  argv: string[]
  /** Its whole environment. */
  env: Record<string, string>
  /** Absolute paths that it and its children may read and execute, with all below. */
  read: string[]
  /** Absolute paths that they may also change. */
  write: string[]
  /** Descriptors that the program finds open, beside 0 to 3. */
  keep: number[]
  /** Whether the version of the kernel's Landlock is to be written to standard error. */
  announce: boolean
}

/** The descriptor on which the launcher finds its plan. */
export const PLAN_FD = 4
