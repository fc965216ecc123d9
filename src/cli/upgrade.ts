import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf } from '../runtime/error-info.ts'
import { executableSystem } from '../runtime/executable-system.ts'
import { ifPresent } from '../runtime/if-present.ts'
import { runHelper } from '../runtime/run-helper.ts'
import { selfCommand } from '../runtime/self.ts'
import { SCHEMA } from '../storage/database.ts'
import { processes } from '../system/processes.ts'
import { CommandError } from './errors.ts'
import { installerOf, libcOf } from './installation.ts'
import type { ProcessContext } from './process-context.ts'
import { versionInfo } from './version.ts'

/** The file with the hashes of a release, as sha256sum(1) writes it. */
const SUMS = 'SHA256SUMS'

/** Milliseconds that the new executable may take to print its version; a cold disk reads 130 MB meanwhile. */
const VERSION_MS = 60_000

/** What an upgrade came to. */
export interface Upgraded {
  readonly before: string
  readonly after: string
  /** Where the older executable is; null if the file has this very version, and nothing was changed. */
  readonly previous: string | null
}

/**
 * Replaces the executable of this process by the one in a file. Nothing is changed unless the whole file has the expected
 * hash, and its program runs here and knows the schema of this berth's data directories.
 *
 * @param file an executable, or a release's `.tar.gz`
 * @param sha256 the expected hash of the file; without it, `SHA256SUMS` beside the file has it
 * @throws CommandError with the cause and the remedy
 */
export async function upgradeFrom(
  file: string,
  sha256: string | undefined,
  { cwd, env }: Pick<ProcessContext, 'cwd' | 'env'>,
): Promise<Upgraded> {
  const own = process.execPath
  if (!selfCommand().compiled)
    throw new CommandError('berth runs from source. Fetch another commit, and build it with scripts/build.')
  const installer = installerOf(own)
  if (installer !== null)
    throw new CommandError(
      `${own} was installed by ${installer.name}, which keeps track of its files. Nothing was changed. Upgrade it with: ${installer.upgrade}`,
    )
  const path = resolve(cwd, file)
  const bytes = readWhole(path)
  checkHash(path, bytes, sha256)
  const program = await executableIn(path, bytes)
  checkSystem(path, program)
  const running = runningFrom(own)
  if (running.length > 0)
    throw new CommandError(
      `${own} runs instances (process ${running.join(', ')}), which start its file again for every server. Stop them first: "berth list" shows them, "berth stop" ends one.`,
    )

  const { version: before, commit } = versionInfo()
  const directory = dirname(own)
  const fresh = freshDirectory(directory)
  try {
    const candidate = join(fresh, 'berth')
    writeFileSync(candidate, program, { flush: true })
    chmodSync(candidate, 0o755)
    const found = await versionOf(candidate, path, env)
    if (found.version === before && found.commit === commit)
      return { before, after: found.version, previous: null }
    if (found.schema < SCHEMA)
      throw new CommandError(
        `${path} has berth ${found.version}, which knows schema ${found.schema} of the data directory; this is berth ${before} with schema ${SCHEMA}. An older one refuses newer directories. Nothing was changed.`,
      )
    const previous = join(directory, `${basename(own)}.previous`)
    // At every moment there is a whole executable under the name.
    const kept = join(fresh, 'previous')
    linkOrCopy(own, kept)
    renameSync(kept, previous)
    renameSync(candidate, own)
    return { before, after: found.version, previous }
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

function readWhole(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new CommandError(`${path} cannot be read: ${messageOf(error)}. Name the file of the new version.`)
  }
}

/** Compares a file with the hash that is given, or that `SHA256SUMS` beside it has. @throws CommandError if they differ */
function checkHash(path: string, bytes: Uint8Array, given: string | undefined): void {
  const sums = join(dirname(path), SUMS)
  const expected = given?.toLowerCase() ?? hashIn(sums, basename(path))
  if (expected === null)
    throw new CommandError(
      `There is no hash to compare ${path} with: ${sums} does not have it. Put ${SUMS} of the release there, or give the hash with --sha256.`,
    )
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  if (hash !== expected)
    throw new CommandError(
      `${path} has the SHA-256 ${hash}, expected was ${expected}. It is another file, or it was damaged on its way: download it again.`,
    )
}

/** Returns the hash of a file in a list of sha256sum(1): lines of a hash, two characters, and a name. */
function hashIn(sums: string, name: string): string | null {
  const lines = (ifPresent(() => readFileSync(sums, 'utf8')) ?? '').split('\n')
  const line = lines.find((one) => one.slice(66) === name)
  return line?.slice(0, 64).toLowerCase() ?? null
}

/** The first bytes of a file that gzip has compressed (RFC 1952, section 2.3.1). */
const GZIP = [0x1f, 0x8b]

/** Returns the program of a release archive; any other file is one itself. */
async function executableIn(path: string, bytes: Buffer): Promise<Uint8Array> {
  if (bytes[0] !== GZIP[0] || bytes[1] !== GZIP[1]) return bytes
  const files = await new Bun.Archive(bytes).files().catch((error: unknown) => {
    throw new CommandError(`${path} is no archive of a release: ${messageOf(error)}. Download it again.`)
  })
  const [, program] = [...files].find(([name]) => basename(name) === 'berth') ?? []
  if (program === undefined)
    throw new CommandError(`${path} has no file "berth" in it. Name an archive of a release of berth.`)
  return await program.bytes()
}

/** Compares the system that an executable is for with this one. @throws CommandError if it is another */
function checkSystem(path: string, program: Uint8Array): void {
  const { system } = versionInfo()
  const libc = libcOf(process.platform)
  const found = executableSystem(program)
  const own = libc === 'musl' ? `${system}-musl` : system
  if (found === own) return
  throw new CommandError(
    found === null
      ? `${path} is no executable. Name the archive of a release for ${own}.`
      : `${path} is for ${found}, and this machine has ${own}. Download the one for ${own}.`,
  )
}

/** Returns the processes, but this one, that run a file. */
function runningFrom(executable: string): number[] {
  const file = statSync(executable)
  return processes.pids().filter((pid) => pid !== process.pid && processes.runs(pid, file))
}

/** Makes a directory on the executable's file system, so that files can be renamed from it. */
function freshDirectory(directory: string): string {
  try {
    return mkdtempSync(join(directory, '.berth-upgrade-'))
  } catch (error) {
    throw new CommandError(
      `Nothing can be written to ${directory}, where the executable is: ${messageOf(error)}. Run the command as the user that installed berth.`,
    )
  }
}

/** Runs an executable for what it says of itself. @throws CommandError if it does not run, or is not berth */
async function versionOf(
  candidate: string,
  path: string,
  { PATH, HOME }: ProcessContext['env'],
): Promise<{ version: string; commit: string | null; schema: number }> {
  let problem: string
  try {
    const options = { env: { PATH, HOME }, timeoutMs: VERSION_MS }
    const { exitCode, stdout, stderr } = await runHelper([candidate, 'version', '--json'], options)
    const { version, commit = null, schema } = exitCode === 0 ? JSON.parse(stdout) : {}
    if (typeof version === 'string' && typeof schema === 'number') return { version, commit, schema }
    problem =
      typeof version === 'string'
        ? `it is berth ${version}, which does not tell the schema of its data directory`
        : stderr.trim() || `it exited with ${exitCode}`
  } catch (error) {
    problem = messageOf(error)
  }
  throw new CommandError(
    `The program in ${path} is no berth that could replace this one: ${problem}. Nothing was changed.`,
  )
}

/** Gives a file a second name. Some file systems have no such links. */
function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}
