import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StartupError } from '../../errors.ts'
import { EXECUTABLE_HEAD, executableSystem } from '../../runtime/executable-system.ts'
import { ifPresent } from '../../runtime/if-present.ts'
import { HelperError, runHelper } from '../../runtime/run-helper.ts'
import { EXECUTABLE_PATH, SERVER_USER } from '../engine/engine.ts'
import { digestOf, ownImage } from '../engine/names.ts'
import type { EngineChoice } from '../engine/open.ts'
import { isRefusal, orMissing } from '../engine/refusal.ts'
import { serverLayer } from '../engine/server-layer.ts'
import type { DockerClient } from './client.ts'
import { describe, onDocker } from './docker-engine.ts'
import { findClient } from './open.ts'
import { findImage, pullImage, VERSION_LABEL } from './server-images.ts'

/** The image that is pulled where nobody names another. */
const USUAL = 'debian:stable-slim'

/** Images upon which berth's own is made where nobody names another, the first that the engine has. */
const BASES = [USUAL, 'debian:bookworm-slim', 'debian:trixie-slim', 'debian:stable', 'ubuntu:latest']

/** Packages of Debian in a root that is made here, with those that they need: what people expect of any server. */
const PACKAGES = [
  ...['ca-certificates', 'curl', 'git', 'make', 'procps', 'util-linux', 'unzip', 'xz-utils'],
  ...['python3', 'python3-pip', 'python3-venv'],
]

/** Files by which Debian keeps pip from its own packages. In an image that is thrown away, they keep people from pip. */
const EXTERNALLY_MANAGED = 'usr/lib/python3*/EXTERNALLY-MANAGED'

/** What of such a root is emptied. */
const UNUSED = ['var/cache/apt', 'var/lib/apt/lists', 'usr/share/doc', 'usr/share/man', 'usr/share/locale']

/** Milliseconds that debootstrap may take: it loads a hundred packages. */
const DEBOOTSTRAP_MS = 900_000

/** Milliseconds between two reports of what it is at. */
const REPORT_MS = 10_000

/** The systems that an engine and the executable of a release are for, as each names it. */
const PLATFORMS: Readonly<Record<string, string>> = {
  'linux/amd64': 'linux-x64',
  'linux/arm64': 'linux-arm64',
}

/** Directories of programs in an image. */
const PROGRAM_DIRECTORIES = ['usr/local/bin', 'usr/bin', 'bin', 'usr/local/go/bin']

/** Programs before which a script of berth goes. */
const WRAPPED = ['python3', 'go', 'deno']

/** The users of an image without a list of them. */
const USERS_OF_NONE = 'root:x:0:0:root:/root:/bin/sh\n'

/** Largest /etc/passwd that is read. @bound system */
const MAX_PASSWD_BYTES = 1024 * 1024

/** The options of `prepareEngine`. */
interface EngineOptions extends EngineChoice, Pick<PrepareOptions, 'base' | 'pulls' | 'report'> {
  /** Path of berth's executable for the engine's system; null if this berth is none. */
  executable: string | null
  /** Path of a file with the image, which is loaded instead; null for none. */
  image: string | null
}

/** Describes the engine that a person means. Throws `StartupError`, `ComputeError`. */
export async function describeEngine(choice: EngineChoice) {
  const { client, name } = findClient(choice)
  const image = ownImage(choice.version)
  return onDocker(name, 'describe itself', async () => {
    const { description, platform } = await describe(client)
    return { name, description, platform, image, hasImage: (await findImage(client, image)) !== null }
  })
}

/**
 * Gives the engine that a person means berth's own image of servers.
 *
 * @returns the image, and what a person calls the engine
 * @throws StartupError
 * @throws ComputeError
 */
export async function prepareEngine(options: EngineOptions): Promise<{ image: string; engine: string }> {
  const { client, name } = findClient(options)
  return onDocker(name, 'make the image', async () => {
    if (options.image !== null) await loadImage(client, options.image, options)
    else {
      const executable = await executableFor(client, options.executable)
      await prepareImage({ ...options, client, name, executable })
    }
    return { image: ownImage(options.version), engine: name }
  })
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
  const system = executableSystem(await Bun.file(executable).slice(0, EXECUTABLE_HEAD).bytes())
  if (system !== null && system.replace('-musl', '') === PLATFORMS[platform]) return executable
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
  const earlier = await findImage(client, reference)
  report(`Making ${reference} upon ${base}.`)
  const settings = { Image: base, Cmd: ['true'], HostConfig: { NetworkMode: 'none' } }
  const id = await client.createContainer(`berth-prepare-${process.pid}`, settings)
  const container = `/containers/${id}`
  try {
    // Beforehand: the engine responds to nothing about the container while it unpacks.
    const found = { programs: await programsIn(client, container), users: await usersIn(client, container) }
    const archive = serverLayer(options.executable, found)
    await client.send('PUT', `${container}/archive`, { query: { path: '/' }, archive, timeoutMs: null })
    const [repo = '', tag = ''] = reference.split(':')
    await client.send('POST', '/commit', {
      query: { container: id, repo, tag },
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
  if (earlier !== null) await removeUnnamed(client, String(earlier.Id))
  return reference
}

/** Removes an image, unless it has a name or a container is made from it. */
async function removeUnnamed(client: DockerClient, id: string): Promise<void> {
  const image = await findImage(client, id)
  const names = [image?.RepoTags, image?.RepoDigests].flatMap((list) => (Array.isArray(list) ? list : []))
  if (image === null || names.length > 0) return
  await client.send('DELETE', `/images/${id}`).catch((error: unknown) => {
    if (!isRefusal(error, 404, 409)) throw error
  })
}

/** Loads berth's own image from the file of `docker save`. Throws `StartupError` if it is not in there. */
async function loadImage(
  client: DockerClient,
  file: string,
  { version, report }: Pick<PrepareOptions, 'version' | 'report'>,
): Promise<void> {
  report(`Loading ${file}.`)
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true)
    throw new StartupError(`There is no file ${file}. Name the image's archive of a release with --image.`)
  await client.send('POST', '/images/load', { archive: Bun.file(file), timeoutMs: null })
  const image = ownImage(version)
  if ((await findImage(client, image)) === null)
    throw new StartupError(`${file} has no ${image} in it. Take the image of berth ${version}.`)
}

/** Returns the image to build upon. */
async function findBase({ client, name, base, pulls, report }: PrepareOptions): Promise<string> {
  for (const one of base === null ? BASES : [base]) if ((await findImage(client, one)) !== null) return one
  if (pulls) {
    const wanted = base ?? USUAL
    report(`Pulling ${wanted}.`)
    await pullImage(client, wanted)
    return wanted
  }
  if (base !== null) throw new StartupError(`${name} has no image ${base}. Pull it there, or add --pull.`)
  return debianRoot(client, name, report)
}

/**
 * Gives an engine a root of Debian's packages as an image, unless it has it, for root on Debian.
 *
 * @param name what a person calls the engine, with its address
 * @param report receives what is being done, a sentence each
 * @returns the reference
 * @throws StartupError
 */
export async function debianRoot(
  client: DockerClient,
  name: string,
  report: (line: string) => void,
): Promise<string> {
  const suite = debianSuite()
  // Named by what it is made of. Podman takes no other tag for it.
  const root = `berth-base-${suite}-${digestOf(PACKAGES.join(), 8)}:latest`
  if ((await findImage(client, root)) !== null) {
    report(
      `${root} is of an earlier preparation. To have it made of newer packages, remove it first: docker rmi ${root}`,
    )
    return root
  }
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || Bun.which('debootstrap') === null)
    throw new StartupError(
      `${name} has no image to build upon (such as ${USUAL}). Pull one there ("docker pull ${USUAL}"), add --pull, name another that has glibc with --base, or, as root on Debian, install debootstrap.`,
    )
  report("Making a root of Debian's packages with debootstrap, which takes a minute or two.")
  return await importDebianRoot(client, suite, root, report)
}

/** Returns the suite of Debian's packages that this machine has. */
function debianSuite(): string {
  const release = ifPresent(() => readFileSync('/etc/os-release', 'utf8')) ?? ''
  return /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1] ?? 'stable'
}

/**
 * Makes a root of a suite of Debian's packages, and gives it to an engine as an image.
 *
 * @returns the reference
 * @throws StartupError
 */
async function importDebianRoot(
  client: DockerClient,
  suite: string,
  reference: string,
  report: (line: string) => void,
): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'berth-root-'))
  const path = join(directory, 'root')
  const options = ['--variant=minbase', `--include=${PACKAGES.join(',')}`]
  try {
    const command = ['debootstrap', ...options, suite, path] as const
    let last = ''
    let reported = performance.now()
    const onStdout = (chunk: Uint8Array): void => {
      last = Buffer.from(chunk).toString().trimEnd().split('\n').at(-1) ?? ''
      if (performance.now() - reported < REPORT_MS) return
      reported = performance.now()
      report(last.replace(/^I: /, 'debootstrap: '))
    }
    const { exitCode } = await runHelper(command, { timeoutMs: DEBOOTSTRAP_MS, onStdout })
    if (exitCode !== 0)
      throw new StartupError(`debootstrap failed: ${last} Read its log, or name a base with --base.`)
    for (const name of UNUSED) rmSync(join(path, name), { recursive: true, force: true })
    for (const file of new Bun.Glob(EXTERNALLY_MANAGED).scanSync({ cwd: path })) rmSync(join(path, file))
    mkdirSync(join(path, 'var/lib/apt/lists/partial'), { recursive: true })
    mkdirSync(join(path, 'var/cache/apt/archives/partial'), { recursive: true })
    const tar = Bun.spawn(['tar', '--numeric-owner', '--exclude=./dev/*', '-C', path, '-c', '.'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    await importRootArchive(client, tar.stdout, reference)
    await tar.exited
    return reference
  } catch (error) {
    if (error instanceof HelperError) throw new StartupError(error.message, { cause: error })
    throw error
  } finally {
    await runHelper(['rm', '-rf', '--', directory])
  }
}

/** Gives an engine a root's tar as an image. */
export async function importRootArchive(
  client: DockerClient,
  archive: ReadableStream<Uint8Array> | Blob,
  reference: string,
): Promise<void> {
  const [repo = '', tag = ''] = reference.split(':')
  const query = { fromSrc: '-', repo, tag }
  await client.send('POST', '/images/create', { query, archive, timeoutMs: null })
}

/** Returns which of `WRAPPED` are in an image, by a container of it. */
async function programsIn(client: DockerClient, container: string): Promise<Set<string>> {
  const found = new Set<string>()
  for (const directory of PROGRAM_DIRECTORIES)
    for (const program of WRAPPED) {
      const query = { path: `/${directory}/${program}` }
      const response = await orMissing(client.request('HEAD', `${container}/archive`, { query }))
      if (response !== null) found.add(program)
    }
  return found
}

/** Returns the list of users of an image, by a container of it. */
async function usersIn(client: DockerClient, container: string): Promise<string> {
  const query = { path: '/etc/passwd' }
  const response = await orMissing(client.request('GET', `${container}/archive`, { query }))
  if (response === null) return USERS_OF_NONE
  const bytes = await response.bytes()
  if (bytes.length > MAX_PASSWD_BYTES) return ''
  const [file] = (await new Bun.Archive(bytes).files()).values()
  return (await file?.text()) ?? USERS_OF_NONE
}
