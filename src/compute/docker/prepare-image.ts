import {
  chmodSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract, type Header, type Pack, pack } from 'tar-stream'
import type { ComputeConfig } from '../../config/compute.ts'
import { StartupError } from '../../errors.ts'
import { codeOf } from '../../runtime/error-info.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { HelperError, runHelper } from '../../runtime/run-helper.ts'
import { tarBytes } from '../../runtime/tar-bytes.ts'
import { CACHES_PATH, EXECUTABLE_PATH, SERVER_USER, TOOLS_PATH, WORKSPACE_PATH } from '../engine/engine.ts'
import { ownImage } from '../engine/names.ts'
import { ToolsDirectory } from '../local/tools-directory.ts'
import { ComputeError } from '../sandbox.ts'
import { type DockerClient, EngineRefusal } from './client.ts'
import { describe } from './docker-engine.ts'
import { findClient } from './open.ts'
import { VERSION_LABEL } from './server-images.ts'

/** Images upon which berth's own is made where nobody names another, the first that the engine has. */
const BASES = [
  'debian:stable-slim',
  'debian:bookworm-slim',
  'debian:trixie-slim',
  'debian:stable',
  'ubuntu:latest',
]

/** Packages of Debian in a root that is made here, with those that they need. Python with its library, for apps. */
const PACKAGES = ['ca-certificates', 'curl', 'git', 'procps', 'python3', 'python3-venv', 'util-linux']

/** The image of such a root. Podman takes no other tag for it. */
const DEBIAN_ROOT = 'berth-base:latest'

/** Milliseconds that debootstrap may take: it loads a hundred packages. */
const DEBOOTSTRAP_MS = 900_000

/** The first bytes of an executable for Linux, and the processors that it can be for: elf(5), e_machine. */
const ELF_MAGIC = 0x7f454c46
const MACHINES: ReadonlyMap<number, string> = new Map([
  [62, 'amd64'],
  [183, 'arm64'],
])

/** Directories of programs in an image. */
const PROGRAM_DIRECTORIES = ['usr/local/bin', 'usr/bin', 'bin', 'usr/local/go/bin']

/** Programs before which a script of berth goes. */
const WRAPPED = ['python3', 'go', 'deno']

/** Largest /etc/passwd that is read. @bound system */
const MAX_PASSWD_BYTES = 1024 * 1024

/** What says which engine a person means. */
export interface EngineMeans {
  config: Pick<ComputeConfig, 'engine'>
  /** The variables that berth was started with. */
  variables: Readonly<Record<string, string | undefined>>
  /** Absolute path of a directory of this user alone. */
  directory: string
  version: string
}

/** The options of `prepareEngine`. */
interface EngineOptions extends EngineMeans, Pick<PrepareOptions, 'base' | 'pulls' | 'report'> {
  /** Path of berth's executable for the engine's system; null if this berth is none. */
  executable: string | null
  /** Path of a file with the image, which is loaded instead; null for none. */
  image: string | null
}

/** What a person may want to know of an engine. */
interface EngineDescription {
  name: string
  description: string
  platform: string
  image: string
  hasImage: boolean
}

/** Describes the engine that a person means. Throws `StartupError`, `ComputeError`. */
export async function describeEngine({
  config,
  variables,
  directory,
  version,
}: EngineMeans): Promise<EngineDescription> {
  const { client, name } = findClient(config, variables, directory)
  const image = ownImage(version)
  const { description, platform } = await describe(client)
  return { name, description, platform, image, hasImage: await hasImage(client, image) }
}

/**
 * Gives the engine that a person means berth's own image of servers.
 *
 * @returns the image, and what a person calls the engine
 * @throws StartupError
 * @throws ComputeError
 */
export async function prepareEngine(options: EngineOptions): Promise<{ image: string; engine: string }> {
  const { config, variables, directory, executable, image, version, report } = options
  const { client, name } = findClient(config, variables, directory)
  try {
    if (image !== null) {
      report(`Loading ${image}.`)
      await loadImage(client, image)
      if (!(await hasImage(client, ownImage(version))))
        throw new StartupError(
          `${image} has no ${ownImage(version)} in it. Take the image of berth ${version}.`,
        )
      return { image: ownImage(version), engine: name }
    }
    const file = await executableFor(client, executable)
    return { image: await prepareImage({ ...options, client, name, executable: file }), engine: name }
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error
    throw new ComputeError(`${name} could not make the image: ${error.message.replace(/\.?$/, '.')}`, {
      cause: error,
    })
  }
}

/** Returns the executable to put into an image, if the engine can run it. */
async function executableFor(client: DockerClient, executable: string | null): Promise<string> {
  const { platform } = await describe(client)
  const remedy = 'Name that of the release for its system with --executable.'
  if (executable === null)
    throw new StartupError(
      `berth runs from source here, and has no executable to put into the image. ${remedy}`,
    )
  if (!existsSync(executable)) throw new StartupError(`There is no file ${executable}. ${remedy}`)
  const header = Buffer.from(await Bun.file(executable).slice(0, 20).arrayBuffer())
  const isLinux = header.length === 20 && header.readUInt32BE(0) === ELF_MAGIC
  const machine = isLinux ? MACHINES.get(header.readUInt16LE(18)) : undefined
  if (platform === `linux/${machine}`) return executable
  throw new StartupError(`The engine runs ${platform}, and ${executable} is not for that. ${remedy}`)
}

/** The options of `prepareImage`. */
interface PrepareOptions {
  client: DockerClient
  /** What a person calls the engine, with its address. */
  name: string
  version: string
  /** Absolute path of berth's executable for the engine's system. */
  executable: string
  /** Reference of the image to build upon; null for the one that is found or made. */
  base: string | null
  /** Whether a base that the engine lacks is pulled. */
  pulls: boolean
  /** Receives what is being done, a sentence each. */
  report(line: string): void
}

/**
 * Makes berth's own image of servers on an engine: its executable and its tools upon another image, by no program of that.
 *
 * @returns the reference
 * @throws StartupError
 * @throws ComputeError
 */
export async function prepareImage(options: PrepareOptions): Promise<string> {
  const { client, version, report } = options
  const base = await findBase(options)
  const reference = ownImage(version)
  report(`Making ${reference} upon ${base}.`)
  const created = fieldsOf(
    await client.json('POST', '/containers/create', {
      query: { name: `berth-prepare-${process.pid}` },
      body: { Image: base, Cmd: ['true'], HostConfig: { NetworkMode: 'none' } },
    }),
  )
  const container = `/containers/${created.Id}`
  try {
    // Beforehand: the engine responds to nothing about the container while it unpacks.
    const found = {
      programs: await programsIn(client, container),
      users: await withServerUser(client, container),
    }
    const archive = streamOf(files(options.executable, found))
    await client.send('PUT', `${container}/archive`, { query: { path: '/' }, archive, timeoutMs: null })
    const [repo, tag] = reference.split(':') as [string, string]
    await client.send('POST', '/commit', {
      query: { container: String(created.Id), repo, tag },
      body: {
        Entrypoint: [EXECUTABLE_PATH],
        Cmd: [],
        WorkingDir: '/',
        User: `${SERVER_USER}:${SERVER_USER}`,
        Labels: { [VERSION_LABEL]: version },
      },
      timeoutMs: null,
    })
  } finally {
    await client.send('DELETE', container, { query: { force: '1', v: '1' } })
  }
  return reference
}

/** Loads images from the file of `docker save`. Throws `StartupError` if it cannot be read. */
async function loadImage(client: DockerClient, file: string): Promise<void> {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true)
    throw new StartupError(`There is no file ${file}. Name the image's archive of a release with --image.`)
  await client.send('POST', '/images/load', { archive: Bun.file(file), timeoutMs: null })
}

/** Returns the image to build upon. */
async function findBase({ client, name, base, pulls, report }: PrepareOptions): Promise<string> {
  for (const one of base === null ? [...BASES, DEBIAN_ROOT] : [base])
    if (await hasImage(client, one)) return one
  const [usual = ''] = BASES
  if (pulls) {
    const wanted = base ?? usual
    report(`Pulling ${wanted}.`)
    const { pullImage } = await import('./server-images.ts')
    await pullImage(client, wanted)
    return wanted
  }
  if (base !== null) throw new StartupError(`${name} has no image ${base}. Pull it there, or add --pull.`)
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || Bun.which('debootstrap') === null)
    throw new StartupError(
      `${name} has no image to build upon (such as ${usual}). Pull one there ("docker pull ${usual}"), add --pull, name another that has glibc with --base, or, as root on Debian, install debootstrap.`,
    )
  report("Making a root of Debian's packages with debootstrap, which takes a minute or two.")
  await using root = await makeDebianRoot()
  return await importRoot(client, root.path)
}

async function hasImage(client: DockerClient, reference: string): Promise<boolean> {
  try {
    await client.send('GET', `/images/${encodeURIComponent(reference)}/json`)
    return true
  } catch (error) {
    if (error instanceof EngineRefusal && error.status === 404) return false
    throw error
  }
}

/**
 * Makes a root of Debian's packages, of the suite that this machine has, in a new directory; disposing of that removes it.
 *
 * @throws StartupError
 */
async function makeDebianRoot(): Promise<AsyncDisposable & { path: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-root-'))
  const dispose = async (): Promise<void> => {
    await runHelper(['rm', '-rf', '--', directory])
  }
  const path = join(directory, 'root')
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'stable'
  const options = ['--variant=minbase', `--include=${PACKAGES.join(',')}`]
  try {
    const { exitCode, stdout } = await runHelper(['debootstrap', ...options, suite, path], {
      timeoutMs: DEBOOTSTRAP_MS,
    })
    if (exitCode !== 0)
      throw new StartupError(
        `debootstrap failed: ${lastLine(stdout)} Read its log, or name a base with --base.`,
      )
    for (const name of [
      'var/cache/apt',
      'var/lib/apt/lists',
      'usr/share/doc',
      'usr/share/man',
      'usr/share/locale',
    ])
      rmSync(join(path, name), { recursive: true, force: true })
    mkdirSync(join(path, 'var/lib/apt/lists/partial'), { recursive: true })
    mkdirSync(join(path, 'var/cache/apt/archives/partial'), { recursive: true })
  } catch (error) {
    await dispose()
    if (error instanceof HelperError) throw new StartupError(error.message, { cause: error })
    throw error
  }
  return { path, [Symbol.asyncDispose]: dispose }
}

/** Gives an engine a root's directory as an image. @returns the reference */
async function importRoot(client: DockerClient, path: string): Promise<string> {
  const tar = Bun.spawn(['tar', '--numeric-owner', '--exclude=./dev/*', '-C', path, '-c', '.'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const reference = await importRootArchive(client, tar.stdout)
  await tar.exited
  return reference
}

/** Gives an engine a root's tar as an image. @returns the reference */
export async function importRootArchive(
  client: DockerClient,
  archive: ReadableStream<Uint8Array> | Blob,
): Promise<string> {
  const [repo = '', tag = ''] = DEBIAN_ROOT.split(':')
  await client.send('POST', '/images/create', {
    query: { fromSrc: '-', repo, tag },
    archive,
    timeoutMs: null,
  })
  return DEBIAN_ROOT
}

/** Yields the tar of what berth adds to an image. */
async function* files(
  executable: string,
  { programs, users }: { programs: ReadonlySet<string>; users: Buffer },
): AsyncGenerator<Uint8Array> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-tools-'))
  try {
    const tools = new ToolsDirectory(join(directory, 'tools'), EXECUTABLE_PATH, TOOLS_PATH)
    tools.prepare((program) => programs.has(program))
    const tar = pack()
    yield* tarBytes(tar, async () => {
      const own = { uid: SERVER_USER, gid: SERVER_USER, mode: 0o755, type: 'directory' as const }
      await addEntry(tar, { name: 'etc/passwd', mode: 0o644 }, users)
      await addEntry(tar, { name: WORKSPACE_PATH.slice(1), ...own })
      await addEntry(tar, { name: CACHES_PATH.slice(1), ...own })
      await addTree(tar, join(directory, 'tools'), TOOLS_PATH.slice(1))
      const { size } = statSync(executable)
      const sink = tar.entry({ name: EXECUTABLE_PATH.slice(1), mode: 0o755, size })
      await pipeline(createReadStream(executable, { highWaterMark: 1024 * 1024 }), sink)
    })
  } finally {
    chmodSync(directory, 0o700)
    rmSync(directory, { recursive: true, force: true })
  }
}

async function addTree(tar: Pack, path: string, name: string): Promise<void> {
  await addEntry(tar, { name, mode: 0o755, type: 'directory' })
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const below = join(path, entry.name)
    const header = {
      name: `${name}/${entry.name}`,
      mode: entry.isSymbolicLink() ? 0o777 : statSync(below).mode & 0o777,
    }
    if (entry.isDirectory()) await addTree(tar, below, header.name)
    else if (entry.isSymbolicLink())
      await addEntry(tar, { ...header, type: 'symlink', linkname: readlinkSync(below) })
    else await addEntry(tar, header, readFileSync(below))
  }
}

function addEntry(tar: Pack, header: Partial<Header> & { name: string }, content?: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  tar.entry({ ...header, size: content?.length ?? 0 }, content ?? Buffer.alloc(0), (error) =>
    error ? reject(error) : resolve(),
  )
  return promise
}

/** Returns which of `WRAPPED` are in an image, by a container of it. */
async function programsIn(client: DockerClient, container: string): Promise<Set<string>> {
  const found = new Set<string>()
  for (const program of WRAPPED) {
    for (const directory of PROGRAM_DIRECTORIES) {
      const query = { path: `/${directory}/${program}` }
      try {
        await client.send('HEAD', `${container}/archive`, { query })
        found.add(program)
        break
      } catch (error) {
        if (!(error instanceof EngineRefusal && error.status === 404)) throw error
      }
    }
  }
  return found
}

/** Returns the image's list of users with the one of servers in it, so that programs find its name and home. */
async function withServerUser(client: DockerClient, container: string): Promise<Buffer> {
  const text = await readPasswd(client, container)
  if (new RegExp(`^[^:]*:[^:]*:${SERVER_USER}:`, 'm').test(text)) return Buffer.from(text)
  return Buffer.from(`${text}berth:x:${SERVER_USER}:${SERVER_USER}:berth:${WORKSPACE_PATH}:/bin/sh\n`)
}

async function readPasswd(client: DockerClient, container: string): Promise<string> {
  try {
    const response = await client.request('GET', `${container}/archive`, { query: { path: '/etc/passwd' } })
    const bytes = Buffer.from(await response.arrayBuffer())
    if (bytes.length > MAX_PASSWD_BYTES) return ''
    const unpacking = extract()
    unpacking.end(bytes)
    for await (const entry of unpacking)
      return Buffer.concat(
        (await Array.fromAsync(entry as AsyncIterable<Uint8Array>)) as Uint8Array[],
      ).toString()
  } catch (error) {
    if (!(error instanceof EngineRefusal && error.status === 404) && codeOf(error) === undefined) throw error
  }
  return 'root:x:0:0:root:/root:/bin/sh\n'
}

/** Returns a stream of what a generator yields, at the pace of its reader. */
function streamOf(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await pieces.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await pieces.return(undefined)
    },
  })
}

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''
