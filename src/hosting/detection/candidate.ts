import { shellQuote } from '../../runtime/shell-quote.ts'
import type { Evidence, GeneratedSecret, LeftOut, StartPlan } from '../app-runtime/plan.ts'
import type { Machine } from './machine.ts'
import type { SourceDirectory } from './source.ts'
import type { ToolNeed } from './versions.ts'

/**
 * How sure it is that a candidate is the app, strongest last: `none` has no start, `weak` may be a tool or a part of another
 * app, `pages` are built or plain files for browsers, `stated` is what the author calls the start, `proven` is code
 * that listens.
 */
export const STRENGTHS = ['none', 'weak', 'pages', 'stated', 'proven'] as const
export type Strength = (typeof STRENGTHS)[number]

/** Reports whether a strength is at least another one. From `pages` on a candidate is strong. */
export const reaches = (strength: Strength, least: Strength): boolean =>
  STRENGTHS.indexOf(strength) >= STRENGTHS.indexOf(least)

/** One way to run what a directory has, as a provider understands it, before a manifest or a Procfile is applied. */
export interface Candidate {
  /** For people: `Node.js (npm)`, `Python (Flask)`, … */
  readonly kind: string
  readonly strength: Strength
  /** Shell commands, run in the candidate's directory; null, the default, if there is nothing to do. */
  readonly install?: string | null
  readonly build?: string | null
  /** Installs what any start may need, where `install` leaves some out. */
  readonly fullInstall?: string | null
  /** How it starts; null, the default, if that is not known. */
  readonly start?: StartPlan | null
  /** Why it has no start: one sentence that names files and what they lack. */
  readonly obstacle?: string
  /** Whether weak candidates of its directory are parts of it, so that none of them is the app. */
  readonly claims?: boolean
  /** Whether its files are built ones that the source has, so that nothing is built for it. */
  readonly isBuilt?: boolean
  /** Put first on PATH of all commands; relative ones are below the candidate's directory. */
  readonly path?: readonly string[]
  /** Variables that the framework needs and the app may set itself. */
  readonly variables?: Readonly<Record<string, string>>
  /** Variables that only have to be secret: berth makes them once for a project, and keeps them. */
  readonly secrets?: Readonly<Record<string, GeneratedSecret>>
  /** The tools that it needs, and the versions that its files ask for. */
  readonly tools?: readonly ToolNeed[]
  readonly evidence: readonly Evidence[]
  /** Directories, relative to the source, whose candidate is built first since this one's build takes in its output. */
  readonly embeds?: readonly string[]
  /** Directories below its own, relative to it, that it builds itself, as members of a workspace. */
  readonly covers?: readonly string[]
  /** Reports whether a command of the author, as in a Procfile, is one for this candidate's tools. */
  readonly runs?: RegExp
  /** Matches commands of the author, as in a Procfile, whose program another host has. Its own start replaces them. */
  readonly replaces?: RegExp
  /** Whether it is no part of another app of its directory, as documentation is none. */
  readonly standsAlone?: boolean
  /** Sentences about what may surprise. */
  readonly warnings?: readonly string[]
  readonly leftOut?: readonly LeftOut[]
}

/** Finds the apps of one language. All look alike, and none executes anything of the source. */
export interface Provider {
  /** In lower case: `python`. */
  readonly name: string
  /** Matches the names of files that make a directory worth a look. */
  readonly marks: RegExp
  /**
   * Returns the candidates of one directory, best first; none if it has nothing of this language.
   *
   * @throws AppError for a broken file
   */
  look(directory: SourceDirectory, machine: Machine): Promise<Candidate[]>
}

/** Returns a start by a shell command that listens on PORT. */
export const startCommand = (command: string): StartPlan => ({ kind: 'command', command, port: null })

/** Returns a start by serving files of a directory. */
export const startFiles = (folder: string, fallback: boolean): StartPlan => ({
  kind: 'files',
  folder,
  fallback,
})

/** Returns a command that runs in another directory, relative to the app's. */
export const inDirectory = (directory: string, command: string): string =>
  directory === '' ? command : `(cd -- ${shellQuote([directory])} && ${command})`
