import { lstatSync, mkdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { namesIn } from '../../../../runtime/if-present.ts'
import { Masks } from '../../../../runtime/masks.ts'
import { orAborted } from '../../../../runtime/wait.ts'
import { type ProcessEnvironment, usesProxy } from '../environment.ts'
import { quoted, SourceError } from '../errors.ts'
import { checkHost, checkName, type HostRules } from '../hosts.ts'
import type { SourceLimits } from '../limits.ts'
import type { GitSource } from '../model.ts'
import { checkTree, tooLarge, tooMany } from '../tree.ts'
import { Git } from './git.ts'
import { checkRepository } from './local-repository.ts'
import { type GitLocation, parseGitUrl } from './location.ts'
import { chooseTarget, isCommitId, type Target } from './reference.ts'
import { type GitSettings, prepareGit } from './settings.ts'

/** Dependencies of `fetchRepository`. */
interface GitDependencies {
  hosts: HostRules
  /** Directories of this machine that repositories may be taken from; absolute. */
  sourceFolders: readonly string[]
  environment: ProcessEnvironment
}

/** The fetch of one repository. */
interface GitJob {
  source: GitSource
  /** A directory that nothing else uses. */
  staging: string
  limits: SourceLimits
  /** Receives git's output, line by line and without credentials. */
  log: (text: string) => void
  signal: AbortSignal
}

/**
 * Fetches one commit of a repository, without history, into a fresh directory of a staging directory. It stays a
 * repository whose remote is the url without its credentials. Submodules and files in Git LFS are not fetched.
 *
 * @returns the directory that is the code, absolute
 * @throws SourceError; the signal's reason
 */
export async function fetchRepository(job: GitJob, dependencies: GitDependencies): Promise<string> {
  const { source, staging, limits, log, signal } = job
  const location = parseGitUrl(source.url)
  const home = join(staging, 'home')
  const masks = new Masks()
  masks.add(secretsOf(location).flatMap((secret) => [secret, encodeURI(secret)]))
  const mask = (text: string): string => masks.mask(text)
  const { settings, remote } = await prepareFetch(location, dependencies, signal)
  const git = new Git({ cwd: home, env: prepareGit(home, settings), fileLimit: limits.bytes, mask, log })

  const target = await findTarget(git, remote, source.ref, signal)
  const code = join(staging, 'code')
  mkdirSync(code, { mode: 0o700 })
  const commit = await receive(git, code, remote, target, job)
  // It may have been changed while git read it.
  if (location.scheme === 'file') await checkRepository(location.path, dependencies.sourceFolders)
  await checkOut(git, code, target, commit, job)
  rmSync(join(code, '.git/FETCH_HEAD'), { force: true })
  await checkTree(code, limits)
  if (await usesLfs(code))
    log('Files that are kept in Git LFS are not fetched: their pointers stand in their place.')
  return code
}

/** Where a repository is fetched from. */
interface Remote {
  /** What the fetched repository knows as its remote. */
  readonly url: string
  /** The arguments that name it to `ls-remote` and `fetch`. */
  readonly from: readonly string[]
}

/** Keeps git from taking `PATH/.git` or `PATH.git` instead of the directory that was checked (git-upload-pack(1)). */
const STRICT = '--upload-pack=git-upload-pack --strict'

function secretsOf(location: GitLocation): string[] {
  if (location.scheme !== 'https' || location.credentials === null) return []
  const { user, password } = location.credentials
  return [password, user, `${user}:${password}`]
}

/** Checks where a repository is, and returns how git is to reach it. @throws SourceError */
async function prepareFetch(
  location: GitLocation,
  dependencies: GitDependencies,
  signal: AbortSignal,
): Promise<{ settings: GitSettings; remote: Remote }> {
  const { hosts, environment, sourceFolders } = dependencies
  if (location.scheme === 'file') {
    const { gitDirectory, safeDirectories } = await checkRepository(location.path, sourceFolders)
    return {
      settings: { location, addresses: [], safeDirectories, environment },
      remote: { url: location.path, from: [STRICT, '--', gitDirectory] },
    }
  }
  const { host, url } = location
  // A proxy resolves names itself, by its own rules.
  const byProxy = location.scheme === 'https' && usesProxy(environment, host)
  if (byProxy) checkName(host, hosts)
  const checked = byProxy ? [] : (await checkHost(host, hosts)).addresses
  const addresses = location.scheme === 'ssh' ? await firstToAccept(checked, location.port, signal) : checked
  return {
    settings: { location, addresses, safeDirectories: [], environment },
    remote: { url, from: ['--', url] },
  }
}

/** Milliseconds in which one of several addresses has to accept a connection. */
const CONNECT_MS = 5_000

/** Returns the first of several addresses that accepts a connection, for ssh, which is given a single one. */
async function firstToAccept(
  addresses: readonly string[],
  port: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (addresses.length < 2) return addresses
  for (const host of addresses) {
    const socket = connect({ host, port, timeout: CONNECT_MS })
    const isOpen = new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      for (const failure of ['error', 'timeout']) socket.on(failure, () => resolve(false))
    })
    try {
      if (await orAborted(isOpen, signal)) return [host]
    } finally {
      socket.destroy()
    }
  }
  return addresses
}

async function findTarget(
  git: Git,
  { from }: Remote,
  ref: string | undefined,
  signal: AbortSignal,
): Promise<Target> {
  if (ref !== undefined && isCommitId(ref)) return { kind: 'commit', source: ref }
  const wanted =
    ref === undefined ? [] : ref.startsWith('refs/') ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`]
  const listing = await git.run(['ls-remote', '--symref', ...from, 'HEAD', ...wanted], { signal })
  const target = chooseTarget(listing, ref)
  if (target !== null) return target
  throw new SourceError(
    ref === undefined
      ? 'The repository has no commits yet, or no default branch. Push one, or name a branch in source.ref.'
      : `The repository has no branch or tag ${quoted(ref)}. Check source.ref; a commit is named by its full id.`,
  )
}

/** Receives the commit and resolves to its id. */
async function receive(
  git: Git,
  code: string,
  { url, from }: Remote,
  target: Target,
  job: GitJob,
): Promise<string> {
  const { limits, signal } = job
  const branch = target.kind === 'branch' ? target.name : null
  await git.run(['init', '--quiet', `--initial-branch=${branch ?? 'main'}`, '--', code], { signal })
  await git.run(
    ['-C', code, 'remote', 'add', ...(branch === null ? [] : ['-t', branch]), '--', 'origin', url],
    { signal },
  )
  using watch = watchSize(join(code, '.git'), limits)
  const received = AbortSignal.any([signal, watch.signal])
  const options = ['--progress', '--depth=1', '--no-tags', '--no-recurse-submodules']
  await git.run(['-C', code, 'fetch', ...options, ...from, refspecOf(target)], { signal: received })
  const peeled = await git.run(
    ['-C', code, 'rev-parse', '--verify', '--end-of-options', 'FETCH_HEAD^{commit}'],
    { signal },
  )
  return peeled.trim()
}

function refspecOf(target: Target): string {
  switch (target.kind) {
    case 'branch':
      return `+${target.source}:refs/remotes/origin/${target.name}`
    case 'tag':
      return `+${target.source}:${target.source}`
    case 'commit':
      return target.source
  }
}

/** Checks the commit's entries, then writes them. */
async function checkOut(git: Git, code: string, target: Target, commit: string, job: GitJob): Promise<void> {
  const { limits, log, signal } = job
  const listing = new TreeListing(limits)
  await git.run(['-C', code, 'ls-tree', '-r', '-t', '-l', '-z', '--full-tree', commit], {
    signal,
    onOutput: (chunk) => listing.push(chunk),
  })
  if (listing.submodules.length > 0) log(`Submodules are not fetched: ${listing.submodules.join(', ')}.`)
  const where =
    target.kind === 'branch'
      ? ['-B', target.name, '--track', `refs/remotes/origin/${target.name}`]
      : ['--detach', commit]
  await git.run(['-C', code, 'checkout', '--quiet', '--force', '--no-recurse-submodules', ...where], {
    signal,
  })
  log(
    `Checked out ${target.kind === 'commit' ? 'commit' : `${target.kind} ${target.name} at`} ${commit.slice(0, 12)}.`,
  )
}

/** Most bytes of `.gitattributes` that are looked at: a repository may have one of any size. @bound system */
const MAX_ATTRIBUTES = 1024 * 1024

async function usesLfs(code: string): Promise<boolean> {
  const attributes = join(code, '.gitattributes')
  // Git takes no attributes from a link or a directory of this name either.
  if (lstatSync(attributes, { throwIfNoEntry: false })?.isFile() !== true) return false
  return (await Bun.file(attributes).slice(0, MAX_ATTRIBUTES).text()).includes('filter=lfs')
}

/** Milliseconds between measurements of a growing directory. */
const EVERY_MS = 200

/** Watches a directory while something is fetched into it. */
interface SizeWatch extends Disposable {
  /** Is aborted with a `SourceError` when the directory has more than the limit. */
  readonly signal: AbortSignal
}

/** Watches the size of a directory with few files: what git has received so far. */
function watchSize(dir: string, limits: SourceLimits): SizeWatch {
  const over = new AbortController()
  const timer = setInterval(() => {
    if (sizeOf(dir) > limits.bytes) over.abort(tooLarge(limits))
  }, EVERY_MS)
  return { signal: over.signal, [Symbol.dispose]: () => clearInterval(timer) }
}

/** Adds up the bytes of all files below a directory; skips those that vanish. */
function sizeOf(dir: string): number {
  let bytes = 0
  for (const name of namesIn(dir)) {
    const path = join(dir, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats?.isDirectory()) bytes += sizeOf(path)
    else bytes += stats?.size ?? 0
  }
  return bytes
}

const SUBMODULE = '160000'
/** Most characters of a record: a path and some numbers. The path of a longer one could not be written. @bound peer */
const MAX_RECORD = 16 * 1024

/**
 * Reads the output of `git ls-tree -r -t -l -z` for a commit before it is written. Counts entries and bytes, so a
 * repository over the limits is given up early.
 */
class TreeListing {
  readonly #limits: SourceLimits
  #remainder = ''
  #entries = 0
  #bytes = 0
  /** Paths of the submodules, which are not fetched; the first few. */
  readonly submodules: string[] = []

  constructor(limits: SourceLimits) {
    this.#limits = limits
  }

  /** Takes the next part of the listing. @throws SourceError over a limit */
  push(chunk: Uint8Array): void {
    const records = (this.#remainder + Buffer.from(chunk).toString('latin1')).split('\0')
    this.#remainder = records.pop() ?? ''
    if (this.#remainder.length > MAX_RECORD)
      throw new SourceError('The repository holds a path that is too long.')
    for (const record of records) this.#count(record)
  }

  #count(record: string): void {
    const tab = record.indexOf('\t')
    const [mode, , , size] = record.slice(0, tab).split(/ +/)
    this.#entries += 1
    if (this.#entries > this.#limits.entries) throw tooMany(this.#limits)
    if (size !== '-' && size !== undefined) this.#bytes += Number(size)
    if (this.#bytes > this.#limits.bytes) throw tooLarge(this.#limits)
    if (mode === SUBMODULE && this.submodules.length < 10) {
      this.submodules.push(quoted(Buffer.from(record.slice(tab + 1), 'latin1').toString()))
    }
  }
}
