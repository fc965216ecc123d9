import type { Workspace, WorkspaceWatch } from '../compute/workspace.ts'
import type { AppPlan } from './app-runtime/plan.ts'

/** Milliseconds without a change after which changes are reported together. */
const QUIET_MS = 100

/**
 * Most paths that are reported together: a build takes up to 15 minutes, and files of any number change meanwhile.
 * @bound program
 */
export const MAX_PATHS = 1_000

/** Directories that tools write and people do not: packages, builds, caches, the app's data. */
const IGNORED_NAMES = [
  ...['node_modules', '.git', '.venv', 'venv', '__pycache__', 'target', 'vendor'],
  ...[
    'dist',
    'build',
    'out',
    '.next',
    '.nuxt',
    '.output',
    '.svelte-kit',
    '.astro',
    '.vite',
    '.turbo',
    '.cache',
  ],
  ...['coverage', 'tmp', 'data', 'logs'],
]

/** Matches files that the app may write, or an editor while it saves. */
const IGNORED_FILES = /(?:\.log|\.tmp|\.sw[a-p]|~|\.(?:db|sqlite3?)(?:-(?:wal|shm|journal))?)$/i

/** Options of a `SourceWatch`. */
interface SourceWatchOptions {
  workspace: Workspace
  /** Relative to the workspace. */
  directory: string
  plan: AppPlan
  /**
   * Called with paths of changed files, at most `MAX_PATHS`, when no change followed for `QUIET_MS`. The next call waits
   * until it has resolved.
   */
  onChange: (paths: ReadonlySet<string>) => Promise<void>
  /** Called once if the system's limit of watched files is reached: some changes are not noticed. */
  onLimit: () => void
}

/** The watch on an app's source files, one at a time. It may be paused by several callers. */
export class PausableWatch {
  #watch: SourceWatch | null = null
  /** Number of callers that have paused. */
  #pauses = 0

  /** Whether anybody has paused. */
  get isPaused(): boolean {
    return this.#pauses > 0
  }

  /** Starts to watch, in place of the watch before. Changes are reported once this resolves. */
  async start(options: SourceWatchOptions): Promise<void> {
    const before = this.#watch
    const watch = new SourceWatch(options)
    this.#watch = watch
    await before?.close()
    await watch.start()
  }

  /** Stops the watch. No further call of `onChange` begins. */
  async stop(): Promise<void> {
    const watch = this.#watch
    this.#watch = null
    await watch?.close()
  }

  /**
   * Stops the watch.
   *
   * @returns a function that ends this pause, which may be called once. It does not start the watch
   */
  async pause(): Promise<() => void> {
    this.#pauses += 1
    await this.stop()
    return () => {
      this.#pauses -= 1
    }
  }
}

/** Watches an app's source files until it is closed. */
class SourceWatch {
  readonly #options: SourceWatchOptions
  readonly #changed = new Set<string>()
  #watch: WorkspaceWatch | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #busy = false
  #closed = false

  constructor(options: SourceWatchOptions) {
    this.#options = options
  }

  /** Starts the watch. Changes are reported once this resolves. */
  async start(): Promise<void> {
    const { workspace, directory, plan } = this.#options
    const served = plan.start.kind === 'files' ? plan.start.folder : ''
    const watch = await workspace.watch(directory, {
      ignored: { names: IGNORED_NAMES, files: IGNORED_FILES, kept: served === '' ? null : served },
      onChange: (path) => {
        if (this.#changed.size < MAX_PATHS) this.#changed.add(path)
        this.#scheduleNotify()
      },
      onLimit: this.#options.onLimit,
    })
    if (this.#closed) await watch.close()
    else this.#watch = watch
  }

  /** Stops the watch. No further call of `onChange` begins. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#watch?.close()
    this.#watch = null
  }

  #scheduleNotify(): void {
    clearTimeout(this.#timer)
    if (!this.#closed && !this.#busy) this.#timer = setTimeout(() => void this.#notify(), QUIET_MS)
  }

  async #notify(): Promise<void> {
    const paths = new Set(this.#changed)
    this.#changed.clear()
    this.#busy = true
    await this.#options.onChange(paths).finally(() => {
      this.#busy = false
      if (this.#changed.size > 0) this.#scheduleNotify()
    })
  }
}
