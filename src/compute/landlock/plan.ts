/** The launcher's input on descriptor 4, as JSON. */
export interface LandlockPlan {
  /** The program to execute, with its arguments. */
  argv: readonly string[]
  /** Its whole environment. */
  env: Readonly<Record<string, string>>
  /** Absolute paths that it and its children may read and execute, including everything below. */
  read: string[]
  /** Absolute paths of directories in which they may list names, including everything below. */
  list: string[]
  /** Absolute paths that they may also change. */
  write: string[]
  /** Descriptors to leave open for the program, besides 0 to 3. */
  keep: number[]
  /** Whether to write the version of the kernel's Landlock to standard error. */
  announce: boolean
}

/** The descriptor on which the launcher finds its plan. */
export const PLAN_FD = 4
