import { lstatSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import { processEnvironment } from '../../runtime/process-environment.ts'
import { type GitRules, readIgnoreFile, workTreeAround } from './gitignore.ts'

/** What git's configuration and index say of a directory in a work tree. */
interface GitListing extends GitRules {
  /** Paths of tracked files and submodules, relative to the directory. */
  readonly tracked: readonly string[]
  /** Those of them that are submodules. */
  readonly submodules: readonly string[]
  /** Those of them that a sparse checkout leaves out. */
  readonly sparse: readonly string[]
}

/** Mode of a submodule in the index. */
const SUBMODULE = '160000'

/** The files of a directory that git tracks, those of nested repositories included. */
export class TrackedFiles {
  readonly #root: string
  readonly #files = new Set<string>()
  /** All tracked paths and the directories above them, by a form in which names that differ in case are equal. */
  readonly #folded = new Map<string, string>()
  readonly #submodules = new Set<string>()
  readonly #sparse = new Set<string>()
  /** Why git did not list a repository, a sentence each. */
  readonly problems: string[] = []

  constructor(root: string) {
    this.#root = root
  }

  /**
   * Adds the files of the work tree that a directory is in, as far as they are in the directory. Adds none outside a work
   * tree, and if git is not installed.
   *
   * @param path the directory, relative to the root; empty for the root itself
   * @returns what git ignores beside `.gitignore` files, and how; null if git listed nothing
   */
  async add(path: string): Promise<GitRules | null> {
    const directory = join(this.#root, path)
    if (workTreeAround(directory) === null) return null
    const listing = await listWorkTree(directory)
    if (listing === null) return null
    if ('problem' in listing) {
      this.problems.push(listing.problem)
      return null
    }
    const prefix = path === '' ? '' : `${path}/`
    for (const one of listing.tracked) this.#addPath(prefix + one)
    for (const one of listing.submodules) this.#submodules.add(prefix + one)
    for (const one of listing.sparse) this.#sparse.add(prefix + one)
    return listing
  }

  #addPath(path: string): void {
    this.#files.add(path)
    this.#folded.set(folded(path), path)
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const above = folded(path.slice(0, at))
      if (this.#folded.has(above)) return
      this.#folded.set(above, path.slice(0, at))
    }
  }

  /** Reports whether git tracks a file, also if only the case of its name has changed since. */
  has(path: string): boolean {
    if (this.#files.has(path)) return true
    const other = this.#folded.get(folded(path))
    return other !== undefined && this.#files.has(other) && this.#isSameFile(path, other)
  }

  /** Reports whether git tracks a file in a directory, or the directory is a submodule. */
  isAbove(path: string): boolean {
    return this.#folded.has(folded(path))
  }

  /** Reports whether a directory is a submodule. */
  isSubmodule(path: string): boolean {
    return this.#submodules.has(path)
  }

  /** Returns the number of tracked files that a sparse checkout leaves out, and that are not among those given. */
  missing(present: Iterable<string>): number {
    return this.#sparse.difference(new Set(present)).size
  }

  /** Reports whether a tracked path is gone, or is this file: file systems exist that ignore case. */
  #isSameFile(path: string, tracked: string): boolean {
    const [one, other] = [path, tracked].map((name) => ifPresent(() => lstatSync(join(this.#root, name))))
    return !other || (one?.ino === other.ino && one.dev === other.dev)
  }
}

const folded = (path: string): string => path.normalize('NFC').toLowerCase()

/**
 * Asks git for the tracked files below a directory. Null if git is not installed, or knows no repository there.
 *
 * Executes nothing that the repository names: its monitor of the file system is off, no index is written, which would run
 * a hook, and no missing object is fetched.
 */
async function listWorkTree(directory: string): Promise<GitListing | { problem: string } | null> {
  const program = Bun.which('git', { PATH: processEnvironment().PATH ?? '' })
  if (program === null) return null
  const git = (...args: string[]) => runGit(program, directory, args)
  const [index, config, exclude] = await Promise.all([
    git('ls-files', '-z', '-t', '--stage'),
    git('config', '-z', '--type=path', '--get-regexp', '^core\\.(excludesfile|ignorecase)$'),
    git('rev-parse', '--git-path', 'info/exclude'),
  ])
  if (index.exitCode !== 0) return explain(index.stderr, directory)
  const entries = index.stdout.split('\0').flatMap((line) => {
    const [, tag, mode, path] = /^(\S) (\d+) \S+ \d\t(.*)$/s.exec(line) ?? []
    return path === undefined ? [] : [{ tag, mode, path }]
  })
  const pathsOf = (isMeant: (entry: (typeof entries)[number]) => boolean) =>
    entries.filter(isMeant).map(({ path }) => path)
  const values = new Map(
    config.stdout.split('\0').map((line) => {
      const end = line.indexOf('\n')
      return [line.slice(0, end), line.slice(end + 1)] as const
    }),
  )
  const { XDG_CONFIG_HOME, HOME } = processEnvironment()
  const personal =
    values.get('core.excludesfile') ??
    (XDG_CONFIG_HOME || HOME ? join(XDG_CONFIG_HOME || join(HOME ?? '', '.config'), 'git/ignore') : '')
  const shared = exclude.stdout.replace(/\n$/, '')
  return {
    tracked: pathsOf(() => true),
    submodules: pathsOf(({ mode }) => mode === SUBMODULE),
    sparse: pathsOf(({ tag }) => tag === 'S'),
    excludes: await Promise.all([
      isAbsolute(personal) ? realpath(personal).then(readIgnoreFile, () => '') : '',
      shared === '' ? '' : readIgnoreFile(isAbsolute(shared) ? shared : join(directory, shared)),
    ]),
    ignoresCase: /^(?:true|yes|on|1)$/i.test(values.get('core.ignorecase') ?? ''),
  }
}

/** Says why git listed nothing; null if there is no repository. */
function explain(stderr: string, directory: string): { problem: string } | null {
  if (/not a git repository \(or any/.test(stderr)) return null
  if (/dubious ownership/.test(stderr)) {
    return {
      problem: `The git repository of ${directory} belongs to another user, so git does not open it: only .gitignore files have decided. If you trust it: git config --global --add safe.directory ${/safe\.directory (.+)/.exec(stderr)?.[1] ?? directory}`,
    }
  }
  const message = stderr.trim().split('\n').at(-1) || 'it printed no reason'
  return {
    problem: `git does not list the files of ${directory}, so only .gitignore files have decided (${message}).`,
  }
}

/** Variables of git that are about the repository of a command that runs berth, such as a hook. */
const OF_ANOTHER_REPOSITORY = /^GIT_(?!CONFIG_|CEILING_DIRECTORIES$|DISCOVERY_ACROSS_FILESYSTEM$)/

async function runGit(program: string, cwd: string, args: readonly string[]) {
  const inherited = Object.entries(processEnvironment()).filter(([name]) => !OF_ANOTHER_REPOSITORY.test(name))
  const child = Bun.spawn([program, '-c', 'core.fsmonitor=false', ...args], {
    cwd,
    env: {
      ...Object.fromEntries(inherited),
      // Its messages are read.
      LC_ALL: 'C',
      GIT_OPTIONAL_LOCKS: '0',
      GIT_NO_LAZY_FETCH: '1',
      // Versions of git that do not know the variable above fetch by no protocol.
      GIT_ALLOW_PROTOCOL: 'none',
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, exitCode] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  return { stdout, stderr, exitCode }
}
