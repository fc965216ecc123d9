import type { StartPlan } from '../plan.ts'
import type { Tools } from '../tools.ts'
import type { AppDirectory } from './app-directory.ts'

/** An app whose start is not known. */
export interface UnknownStart {
  readonly kind: 'unknown'
  /** Why, as a sentence. */
  readonly reason: string
  /** Whether nothing else in the directory can be the app. */
  readonly final: boolean
}

/** How an app runs by its own files, before a manifest or a Procfile is applied. */
export interface DetectedApp {
  /** For people: `Node.js (npm)`, `Python (Flask)`, … */
  readonly kind: string
  /** Shell commands; null if there is nothing to do. */
  readonly install: string | null
  /** Installs all dependencies, for a start command of the user's that may need more than the detected one. */
  readonly fullInstall?: string | null
  readonly build: string | null
  /** How it starts, or why that is unknown. */
  readonly start: StartPlan | UnknownStart
  /** The directory of the programs that dependencies bring along, relative to the app's; null for none. */
  readonly bin: string | null
  /** Tools that a machine may not have. */
  readonly needs: readonly string[]
}

/** Looks whether a directory holds an app of its kind; null if it does not. @throws AppError at a broken file */
export type Detector = (app: AppDirectory, tools: Tools) => Promise<DetectedApp | null>

/** Starts by a shell command that listens on PORT. */
export const startCommand = (command: string): StartPlan => ({ kind: 'command', command, port: null })

/** Starts by serving files. */
export const startFiles = (directory: string, fallback: boolean): StartPlan => ({
  kind: 'files',
  folder: directory,
  fallback,
})

/** Does not start, for this reason; something else in the directory may. */
export const unknownStart = (reason: string): UnknownStart => ({ kind: 'unknown', reason, final: false })

/** Does not start, for this reason, nor does anything else in the directory. */
export const noStartFound = (reason: string): UnknownStart => ({ kind: 'unknown', reason, final: true })
