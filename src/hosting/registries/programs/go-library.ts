import { existsSync, statSync } from 'node:fs'
import { chmod, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Limits } from '../../../compute/compute.ts'
import type { Sandbox } from '../../../compute/sandbox.ts'
import {
  findToolchains,
  PROGRAMS_DIRECTORY,
  type PrintedVersions,
  type ToolPlaces,
  UNFINISHED,
} from '../../../compute/tools.ts'
import { realPathOrNull } from '../../../runtime/if-present.ts'
import type { Logger } from '../../../runtime/logger.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import { SharedCalls } from '../shared-calls.ts'

/** The part that most programs with an HTTP server are built from. */
const PACKAGES = ['net/http', 'encoding/json', 'html/template', 'log/slog', 'database/sql', 'os/signal']

/** Most libraries that are kept, each of some 100 MB. Servers choose the kinds of builds. @bound program */
const MOST_LIBRARIES = 4

/** What a compilation may use. */
const LIMITS: Limits = { cpus: 4, memoryBytes: 4 * 2 ** 30, processes: 1_000, storageBytes: 2 ** 30 }

/** Milliseconds after which it is given up. */
const TIMEOUT_MS = 10 * 60_000

/** Characters of a failed compilation's output that berth's log has. */
const SHOWN_OUTPUT = 2_000

/** Runs something in a sandbox that belongs to no server. Null if there is none. */
export type Aside = <Result>(
  limits: Limits,
  use: (sandbox: Sandbox) => Promise<Result>,
) => Promise<Result | null>

/** Options of `GoLibrary`. */
interface GoLibraryOptions {
  /** Returns where to compile; null where servers do not have this machine's Go, nor see what berth keeps. */
  aside: () => Aside | null
  /** Absolute path of the directory of tools, as berth sees it. */
  tools: string
  /** What says which Go the machine has. */
  machine: ToolPlaces
  logger: Logger
}

/**
 * Go's standard library, compiled: for each Go of the machine and each kind of build a tar archive of a build cache, which
 * servers see read-only and copy into their own. A sandbox that no server has compiles it, of the toolchain's files alone.
 * Go itself decides, by the hashes of all that a compilation depends on, whether a build uses what it finds there. So an archive may be
 * of no use, but is never wrong.
 */
export class GoLibrary {
  readonly #options: GoLibraryOptions
  readonly #calls = new SharedCalls<boolean>()
  /** Names of those that Go could not compile. */
  readonly #failed = new Set<string>()
  readonly #printed: PrintedVersions = new Map()

  constructor(options: GoLibraryOptions) {
    this.#options = options
  }

  /**
   * Returns the path of a library, relative to the directory of tools; null if there is none.
   *
   * @param query how a server builds: `program`, the absolute path of its Go; `cgo` and `trimpath`, 1 or 0; `compile`, 1 if a missing
   * library is to be compiled, which takes seconds to minutes
   */
  async find(query: URLSearchParams): Promise<string | null> {
    if (this.#options.aside() === null) return null
    const build = {
      program: realPathOrNull(query.get('program') ?? '') ?? '',
      cgo: query.get('cgo') === '1',
      trimpath: query.get('trimpath') === '1',
    }
    const name = nameOf(build)
    const place = join(PROGRAMS_DIRECTORY, name)
    if (existsSync(join(this.#options.tools, place))) return place
    if (query.get('compile') !== '1' || this.#failed.has(name)) return null
    // A server may name any program.
    const known = await findToolchains(this.#options.machine, {
      sees: 'all',
      of: ['go'],
      printed: this.#printed,
    })
    if (!known.some(({ path }) => realPathOrNull(path) === build.program)) return null
    return (await this.#calls.get(name, () => this.#make(build, name))) ? place : null
  }

  /** Compiles a library, and reports whether it is there. */
  async #make(build: GoBuild, name: string): Promise<boolean> {
    const { tools, logger } = this.#options
    const directory = join(tools, PROGRAMS_DIRECTORY)
    const fresh = join(directory, `${UNFINISHED}${name}`)
    try {
      await this.#compile(build, fresh)
      await chmod(fresh, 0o444)
      await rename(fresh, join(directory, name))
      await removeOld(directory)
      return true
    } catch (error) {
      if (error instanceof CompilationError) this.#failed.add(name)
      logger.warn(NO_LIBRARY, { program: build.program, error })
      await rm(fresh, { force: true })
      return false
    }
  }

  /** Writes an archive. @throws CompilationError, and others that may not happen again */
  async #compile({ program, cgo, trimpath }: GoBuild, target: string): Promise<void> {
    await using file = await open(target, 'w')
    const exitCode = await this.#options.aside()?.(LIMITS, async (sandbox) => {
      const go = shellQuote([program, 'build', ...(trimpath ? ['-trimpath'] : []), ...PACKAGES])
      let output = ''
      const { exit } = sandbox.exec({
        command: `cd / && ${go} >&2 && tar -C "$GOCACHE" -cf - .`,
        // Go reads the files of this toolchain only, and writes nothing into the workspace: the next start removes what a kill
        // leaves, unless there are files in the workspace.
        env: { CGO_ENABLED: cgo ? '1' : '0', GOTOOLCHAIN: 'local', GOPROXY: 'off', HOME: sandbox.caches },
        timeoutMs: TIMEOUT_MS,
        async onOutput(stream, data) {
          if (stream === 'stdout') await file.appendFile(data)
          else output = `${output}${Buffer.from(data)}`.slice(-SHOWN_OUTPUT)
        },
      })
      const { exitCode } = await exit
      // Above, a signal has ended it.
      if (exitCode !== 0 && exitCode < 128) throw new CompilationError(output)
      return exitCode
    })
    if (exitCode !== 0) throw new Error('It was ended.')
  }
}

/** Go cannot compile the library. It is not tried again. */
class CompilationError extends Error {
  override readonly name = 'CompilationError'
}

const NO_LIBRARY = "Go's standard library could not be compiled for servers, so each compiles it for itself"

/** How a server builds. */
interface GoBuild {
  /** Absolute path of Go, without links. */
  readonly program: string
  /** Whether code in C is built too. */
  readonly cgo: boolean
  /** Whether `-trimpath` is set. */
  readonly trimpath: boolean
}

/** Returns the name of a library's archive: another one for another Go, and for another compiler of C. */
function nameOf(build: GoBuild): string {
  const compiler = Bun.which('gcc', { PATH: '/usr/local/bin:/usr/bin:/bin' })
  const changed = [build.program, compiler].map(
    (path) => path && statSync(path, { throwIfNoEntry: false })?.mtimeMs,
  )
  const key = JSON.stringify([build, changed, PACKAGES])
  return `${PREFIX}${new Bun.CryptoHasher('sha256').update(key).digest('hex')}.tar`
}

const PREFIX = 'go-'

/** Removes all libraries but the newest. */
async function removeOld(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name.startsWith(PREFIX))
  const madeAt = new Map(names.map((name) => [name, statSync(join(directory, name)).mtimeMs]))
  const old = names.sort((a, b) => (madeAt.get(b) ?? 0) - (madeAt.get(a) ?? 0)).slice(MOST_LIBRARIES)
  for (const name of old) await rm(join(directory, name), { force: true })
}
