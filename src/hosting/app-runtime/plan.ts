/** A variable that an app asks for. */
export interface EnvRequirement {
  /** Whether the app cannot start without it. */
  readonly required: boolean
  readonly description: string | null
  /** Value if none is given. */
  readonly default: string | null
}

/** How to make an app respond to requests. */
export type StartPlan =
  /** A shell command, run in the app's directory, that listens on a port of 127.0.0.1. */
  | { readonly kind: 'command'; readonly command: string; readonly port: number | null }
  /** Files that berth serves itself. */
  | {
      readonly kind: 'files'
      /** Relative to the app's directory; empty for the directory itself. */
      readonly folder: string
      /** Whether paths without a file get the index page, for single-page apps. */
      readonly fallback: boolean
    }

/**
 * How the app in a directory is installed, built and started, from its manifest and detection. Plain JSON, stored in
 * the database.
 */
export interface AppPlan {
  /** A name for people: `Node.js (npm)`, `Python (Flask)`, `static files`, … */
  readonly kind: string
  /** Files that detection has read, relative to the app's directory; not known of plans of before. */
  readonly foundIn?: readonly string[]
  /** What berth does not run of what its files ask for, and why; not known of plans of before. */
  readonly leftOut?: readonly { readonly what: string; readonly why: string }[]
  /** Shell commands, run in the app's directory in this order; null if there is nothing to do. */
  readonly install: string | null
  readonly build: string | null
  readonly start: StartPlan
  /** Path that must respond with a status under 500. */
  readonly health: string
  /** Whether a change of its files restarts or reloads the app. */
  readonly watch: boolean
  /** Variables that it asks for, by name. */
  readonly env: Readonly<Record<string, EnvRequirement>>
}

/** Returns the names of required variables without a default that are not among the given ones. */
export const missingVariables = ({ env }: Pick<AppPlan, 'env'>, given: ReadonlySet<string>): string[] =>
  Object.entries(env)
    .filter(([name, { required, default: value }]) => required && value === null && !given.has(name))
    .map(([name]) => name)
    .sort()

/** Error: an app cannot be understood, installed, built or started. The message names the cause and the remedy. */
export class AppError extends Error {
  override readonly name: string = 'AppError'
}

/** Error: nothing in the directory says how an app starts. */
export class NoAppFound extends AppError {
  override readonly name = 'NoAppFound'
}

/** How a process of an app ended. */
export interface ProcessEnd {
  /** For a person, within a sentence: `it ended with exit code 1.` */
  readonly reason: string
  /** 128 and the signal's number for a process that a signal ended; null if it is not known. */
  readonly exitCode: number | null
}

/** Error: a command of an app failed. The message is one sentence, followed by the end of the command's output. */
export class AppFailure extends AppError {
  override readonly name = 'AppFailure'

  /**
   * @param summary one sentence: the cause and, if there is one, the remedy
   * @param log the last lines of output, secrets masked
   * @param end how its process ended; null if that is not the cause
   * @param endedUnheard whether its process ended without having listened
   */
  constructor(
    readonly summary: string,
    readonly log: readonly string[],
    readonly end: ProcessEnd | null = null,
    readonly endedUnheard: boolean = false,
  ) {
    super(log.length === 0 ? summary : `${summary} The end of its log:\n${log.join('\n')}`)
  }
}
