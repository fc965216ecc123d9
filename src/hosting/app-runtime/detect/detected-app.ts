import type { StartPlan } from '../plan.ts'
import type { Tools } from '../tools.ts'
import type { AppDirectory } from './app-directory.ts'

/** An app whose start is not known. */
interface UnknownStart {
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
  /** Installs all dependencies, for a custom start command that may need more than the detected one. */
  readonly fullInstall?: string | null
  readonly build: string | null
  /** How it starts, or why that is unknown. */
  readonly start: StartPlan | UnknownStart
  /** Directory of the programs that dependencies install, relative to the app's; null for none. */
  readonly bin: string | null
  /** Tools that a machine may not have. */
  readonly needs: readonly string[]
}

/**
 * Detects an app of one kind in a directory. Returns null if there is none.
 *
 * @throws AppError for a broken file
 */
export type Detector = (app: AppDirectory, tools: Tools) => Promise<DetectedApp | null>

/** Returns a start by a shell command that listens on PORT. */
export const startCommand = (command: string): StartPlan => ({ kind: 'command', command, port: null })

/** Returns a start by serving files. */
export const startFiles = (directory: string, fallback: boolean): StartPlan => ({
  kind: 'files',
  folder: directory,
  fallback,
})

/** Returns the reason why a detected app has no start. Other detectors may find one. */
export const unknownStart = (reason: string): UnknownStart => ({ kind: 'unknown', reason, final: false })

/** Returns the reason why no app in the directory has a start. Ends detection. */
export const noStartFound = (reason: string): UnknownStart => ({ kind: 'unknown', reason, final: true })
