import { ExplainedError, explanationOf } from '../../errors.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'

/** How a secret is written that berth makes: 64 hexadecimal digits, or as Laravel reads a key. */
export type GeneratedSecret = 'hex' | 'laravel'

/** A variable that an app asks for. */
export interface EnvRequirement {
  /** Whether the app cannot start without it. */
  readonly required: boolean
  readonly description: string | null
  /** Value if none is given. */
  readonly default: string | null
  /** How berth makes its value if none is given; absent if it makes none. */
  readonly generated?: GeneratedSecret
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
  /** Nothing that responds: there are workers alone. */
  | { readonly kind: 'workers' }

/** Where a file of an app says something that decided how it is run. */
export interface Evidence {
  /** Relative to the source. */
  readonly file: string
  /** From 1; null where it is the file's existence that counts. */
  readonly line: number | null
  /** The line, at most 200 characters of it. */
  readonly says: string
}

/** A tool that an app needs. */
export interface FoundTool {
  /** The command's name. */
  readonly name: string
  /** The version that the app's files ask for, as they say it; null for any. */
  readonly wanted: string | null
  /** The file that asks for it; null where none does. */
  readonly wantedBy: string | null
  /** The version that runs; null if it is not installed. */
  readonly found: string | null
}

/** What berth does not run of what an app's files ask for. */
export interface LeftOut {
  readonly what: string
  /** A clause that follows "since". */
  readonly why: string
}

/** Another app of the same source, which is not run. */
export interface OtherApp {
  /** Relative to the source; empty for the source itself. */
  readonly directory: string
  readonly kind: string
  /** A `berth.json` of the source that runs it; null where naming its directory does. */
  readonly berthJson: Readonly<Record<string, unknown>> | null
}

/**
 * How the app in a directory is installed, built and started, from its manifest and detection. Plain JSON, stored in
 * the database.
 */
export interface AppPlan {
  /** A name for people: `Node.js (npm)`, `Python (Flask)`, `static files`, … */
  readonly kind: string
  /** Where its commands run, relative to the source; empty for the source itself. */
  readonly directory: string
  /** Shell commands, run in the app's directory in this order; null if there is nothing to do. */
  readonly install: string | null
  readonly build: string | null
  /** A shell command that has to succeed before a version starts. */
  readonly release: string | null
  /** The directory of files is relative to the source. */
  readonly start: StartPlan
  /** Shell commands of programs that run beside it, by name. */
  readonly workers: Readonly<Record<string, string>>
  /** Seconds from the start command to the first healthy response; null for 60. */
  readonly timeout: number | null
  /** Path that must respond with a status under 500. */
  readonly health: string
  /** Whether a change of its files restarts or reloads the app. */
  readonly watch: boolean
  /** Variables that it asks for, by name. */
  readonly env: Readonly<Record<string, EnvRequirement>>
  /** Put first on PATH of all its commands; relative ones are below its directory. */
  readonly path: readonly string[]
  /** Variables that its framework needs; its own come before them. */
  readonly variables: Readonly<Record<string, string>>
  readonly tools: readonly FoundTool[]
  readonly evidence: readonly Evidence[]
  readonly leftOut: readonly LeftOut[]
  readonly others: readonly OtherApp[]
  /** Sentences about what may surprise. */
  readonly warnings: readonly string[]
}

/** Completes a plan of fewer fields, such as one that an earlier version has stored. */
export const storedPlan = (stored: Partial<AppPlan> & Pick<AppPlan, 'kind' | 'start'>): AppPlan => ({
  directory: '',
  install: null,
  build: null,
  release: null,
  workers: {},
  timeout: null,
  health: '/',
  watch: false,
  env: {},
  path: [],
  variables: {},
  tools: [],
  evidence: [],
  leftOut: [],
  others: [],
  warnings: [],
  ...stored,
})

/** Returns the text to run for a command of an app: in the app's directory, with its programs on PATH. */
export function inApp({ directory, path }: Pick<AppPlan, 'directory' | 'path'>, command: string): string {
  const change = directory === '' ? '' : `cd -- ${shellQuote([directory])} && `
  if (path.length === 0) return `${change}${command}`
  const first = path.map((one) => (one.startsWith('/') ? one : `$PWD/${one}`)).join(':')
  const virtual = path.includes(VENV) ? '[ ! -d .venv ] || export VIRTUAL_ENV="$PWD/.venv"; ' : ''
  return `${change}export PATH="${first.replaceAll(/["`\\]/g, '\\$&')}:$PATH"; ${virtual}${command}`
}

/** Where the programs of a virtual environment of Python are, which its activation puts on PATH and names in VIRTUAL_ENV. */
const VENV = '.venv/bin'

/** Returns what was found, as lines of a log. */
export function describePlan({ kind, directory, evidence, leftOut, others, warnings }: AppPlan): string[] {
  const files = [
    ...new Set(evidence.map(({ file, line }) => (line === null ? file : `${file} line ${line}`))),
  ]
  const by = files.length === 0 ? '' : `, by ${files.slice(0, MAX_NAMED).join(', ')}`
  return [
    `Found: ${kind}${directory === '' ? '' : ` in ${directory}`}${by}.`,
    ...leftOut.map(({ what, why }) => `Not started: ${what}, since ${why}`),
    ...[
      ...Map.groupBy(others, ({ kind: other, directory: at }) => `${other} in ${at || 'the same directory'}`),
    ].map(([what, apps]) => {
      const [first] = apps
      const starts = apps.length === 1 ? '' : ` (${apps.map(startOf).join(', ')})`
      return `Not started: ${what}${starts}, since one app runs. ${first === undefined ? '' : remedyOf(first)}`
    }),
    ...warnings.map((warning) => `Warning: ${warning}`),
  ]
}

/** Most files that a line names. @bound reader */
const MAX_NAMED = 5

const remedyOf = ({ directory, berthJson }: OtherApp): string =>
  berthJson === null
    ? `To run it, name its directory: --directory ${shellQuote([directory])}`
    : `To run ${startOf({ berthJson })}, put this into berth.json: ${JSON.stringify(berthJson)}`

/** Returns how an app of the source's own directory starts, which tells it from others there. */
const startOf = ({ berthJson }: Pick<OtherApp, 'berthJson'>): string => String(berthJson?.start ?? 'it')

type Variables = Readonly<Record<string, string>>

/** Returns the variables with which an app is built: its framework's, its defaults, and the given ones above them. */
export function buildVariables(
  { env, variables }: Pick<AppPlan, 'env' | 'variables'>,
  given: Variables,
): Variables {
  const defaults = Object.entries(env).flatMap(([name, { default: value }]) =>
    value === null ? [] : [[name, value] as const],
  )
  return { ...variables, ...Object.fromEntries(defaults), ...given }
}

/** Returns the variables with which an app runs. */
export const runVariables = (plan: Pick<AppPlan, 'env' | 'variables'>, given: Variables): Variables => ({
  NODE_ENV: 'production',
  PYTHONUNBUFFERED: '1',
  ...buildVariables(plan, given),
})

/** Returns the names of required variables without a default that are not among the given ones. */
export const missingVariables = ({ env }: Pick<AppPlan, 'env'>, given: ReadonlySet<string>): string[] =>
  Object.entries(env)
    .filter(([name, { required, default: value }]) => required && value === null && !given.has(name))
    .map(([name]) => name)
    .sort()

/** Error: an app cannot be understood, installed, built or started. The message names the cause and the remedy. */
export class AppError extends ExplainedError {
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
  readonly #summary: string

  /**
   * @param summary one sentence: the cause and, if there is one, the remedy
   * @param log the last lines of output, secrets masked
   * @param end how its process ended; null if that is not the cause
   * @param endedUnheard whether its process ended without having listened
   */
  constructor(
    summary: string,
    readonly log: readonly string[],
    readonly end: ProcessEnd | null = null,
    readonly endedUnheard: boolean = false,
  ) {
    super(log.length === 0 ? summary : `${summary} The end of its log:\n${log.join('\n')}`)
    this.#summary = summary
  }

  /** One sentence, without the end of the output. */
  override get summary(): string {
    return this.#summary
  }
}

/** Returns what a log says of an error that has the end of the output already. */
export const summaryOf = (error: unknown): string => explanationOf(error) ?? messageOf(error)
