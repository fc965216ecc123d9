import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fromBuffer } from 'yauzl'
import { PROGRAMS_DIRECTORY, UNFINISHED } from '../../../compute/tools.ts'
import { makeReadable } from '../../../runtime/make-readable.ts'
import type { Files } from '../files.ts'
import type { RegistryParts } from '../parts.ts'
import { PackageError } from '../problem.ts'
import { SharedCalls } from '../shared-calls.ts'
import { type Client, isPlainPath, type Protocol } from '../wanted.ts'
import { NPM_PROGRAMS, type NpmProgram, UV } from './catalog.ts'

/** Most bytes of a program's archive. @bound peer */
const MAX_BYTES = 200 * 2 ** 20

const EXACT = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/

/** A registry that programs come from. */
interface Source {
  readonly protocol: Protocol
  readonly parts: RegistryParts
}

/** What a project says about a package manager. */
export interface ProgramWish {
  /** A version or a range of versions; null if the project says nothing. */
  readonly version: string | null
  /** Its hash, as Corepack has it: algorithm, dot, hexadecimal digest; null for none. */
  readonly hash: string | null
  /** The server's processor, as Node.js names it; null for this machine's. */
  readonly processor: string | null
}

/** The archive of a program's version. */
interface Archive {
  readonly version: string
  /** The SHA-256 that berth comes with; null for another version, which is checked against its registry's record alone. */
  readonly sha256: string | null
  /** Its path below the registry. */
  readonly path: string
}

/** Options of `Programs`. */
interface ProgramsOptions {
  files: Files
  npm: Source
  pypi: Source
  /** Absolute path of the directory of tools, as berth sees it. */
  tools: string
}

/**
 * The package managers that machines lack, each in a directory that is named by the hash of its archive, and which servers see
 * read-only. berth fetches them from the registries, never from one that a server or a project names.
 */
export class Programs {
  readonly #options: ProgramsOptions
  readonly #calls = new SharedCalls<string>()

  constructor(options: ProgramsOptions) {
    this.#options = options
  }

  /**
   * Returns the path of a program, relative to the directory of tools; null if there is no program of that name.
   *
   * @throws PackageError
   */
  async find(name: string, wish: ProgramWish): Promise<string | null> {
    const ofNpm = NPM_PROGRAMS.find(({ entries }) => Object.hasOwn(entries, name))
    if (ofNpm !== undefined) {
      const archive = await this.#npmArchive(ofNpm, wish)
      const place = await this.#keep(this.#options.npm, archive, wish.hash, unpackTarball)
      return join(place, ofNpm.entries[name] ?? '')
    }
    if (!UV.names.some((one) => one === name)) return null
    const place = await this.#keep(this.#options.pypi, await this.#uvArchive(wish), null, unpackUv)
    return join(place, name)
  }

  async #npmArchive({ package: packageOf, entries, pins }: NpmProgram, wish: ProgramWish): Promise<Archive> {
    const [usual] = pins
    const wanted = wish.version ?? usual.version
    const pinned = pins.find(({ version }) => version === wanted || isIn(version, wanted))
    const [name = ''] = Object.keys(entries)
    const version =
      pinned?.version ?? (EXACT.test(wanted) ? wanted : await this.#newest(packageOf(wanted), wanted))
    if (version === null) throw new PackageError(`The registry has no ${name} ${wanted}.`, 404)
    const at = packageOf(version)
    const path = `/${at}/-/${at.split('/').pop()}-${version}.tgz`
    return { version, sha256: pinned?.sha256 ?? null, path }
  }

  /** Returns the newest version of a package that is in a range; null if there is none. */
  async #newest(name: string, range: string): Promise<string | null> {
    const text = await this.#text(this.#options.npm, `/${name}`)
    const { versions = {} } = JSON.parse(text) as { versions?: Record<string, unknown> }
    return newestIn(Object.keys(versions), range)
  }

  async #uvArchive({ version: wanted, processor }: ProgramWish): Promise<Archive> {
    const { tag, sha256 } = UV.wheels[processor ?? process.arch] ?? {}
    if (tag === undefined || sha256 === undefined)
      throw new PackageError(
        `There is no uv for processors of this kind (${processor ?? process.arch}).`,
        404,
      )
    const range = wanted === null ? UV.version : asRange(wanted)
    const text = await this.#text(this.#options.pypi, '/simple/uv/')
    const { files } = JSON.parse(text) as { files: { filename: string }[] }
    const wheels = new Map(
      files.flatMap(({ filename }) => {
        const [, version, rest = ''] = /^uv-([^-]+)-(.*)\.whl$/.exec(filename) ?? []
        return version !== undefined && tag.test(rest) ? [[version, filename] as const] : []
      }),
    )
    const version = isIn(UV.version, range) ? UV.version : newestIn([...wheels.keys()], range)
    const file = version === null ? undefined : wheels.get(version)
    if (version === null || file === undefined)
      throw new PackageError(`The package index has no uv ${wanted ?? UV.version} for this machine.`, 404)
    return { version, sha256: version === UV.version ? sha256 : null, path: `/files/uv/${file}` }
  }

  /** Returns a document of a registry. */
  async #text({ protocol, parts }: Source, path: string): Promise<string> {
    const wanted = protocol.parse(path, CLIENT)
    if (wanted?.kind !== 'document') throw new PackageError(`There is no ${path}.`, 404)
    return parts.documents.get(wanted.source)
  }

  /** Returns the directory of an archive's content, relative to that of tools. */
  async #keep(source: Source, archive: Archive, hash: string | null, unpack: Unpack): Promise<string> {
    const { sha256, path } = archive
    const known = sha256 === null ? null : join(PROGRAMS_DIRECTORY, sha256)
    if (known !== null && hash === null && existsSync(join(this.#options.tools, known))) return known
    return this.#calls.get(`${path} ${hash}`, () => this.#fetch(source, archive, hash, unpack))
  }

  async #fetch(
    { protocol, parts }: Source,
    { version, sha256, path }: Archive,
    hash: string | null,
    unpack: Unpack,
  ): Promise<string> {
    const wanted = protocol.parse(path, CLIENT)
    if (wanted?.kind !== 'file') throw new PackageError(`There is no version ${version}.`, 404)
    const { size, body } = await this.#options.files.get(wanted, parts)
    if (size > MAX_BYTES) throw new PackageError(`${wanted.file} is larger than berth takes.`, 424)
    const bytes = new Uint8Array(await new Response(body).arrayBuffer())
    const found = hashOf('sha256', bytes)
    if (sha256 !== null && sha256 !== found)
      throw new PackageError(
        `${wanted.file} of the registry is not what berth comes with the hash of: ${sha256} was expected, ${found} came.`,
        424,
      )
    const files = await unpack(bytes)
    if (hash !== null) checkHash(hash, wanted.file, [bytes, files.get('package/bin/yarn.js')?.content])
    const place = join(PROGRAMS_DIRECTORY, found)
    const target = join(this.#options.tools, place)
    if (!existsSync(target)) await write(files, target)
    return place
  }
}

/** The relay itself, as a client of its registries. */
const CLIENT: Client = { userAgent: 'berth', accept: 'application/vnd.npm.install-v1+json', base: '' }

/** A file of a program. */
interface ProgramFile {
  readonly content: Uint8Array
  readonly isExecutable: boolean
}

/** Returns the files of an archive by path. */
type Unpack = (bytes: Uint8Array<ArrayBuffer>) => Promise<Map<string, ProgramFile>>

const unpackTarball: Unpack = async (bytes) => {
  const files = new Map<string, ProgramFile>()
  for (const [path, file] of await new Bun.Archive(bytes).files()) {
    const content = await file.bytes()
    // The archive's own modes are not read: what has an interpreter is a program.
    if (isPlainPath(path))
      files.set(path, { content, isExecutable: content[0] === 0x23 && content[1] === 0x21 })
  }
  return files
}

/** Takes the programs out of a wheel of uv. */
const unpackUv: Unpack = async (bytes) => {
  const files = new Map<string, ProgramFile>()
  const zip = await new Promise<import('yauzl').ZipFile>((resolve, reject) =>
    fromBuffer(Buffer.from(bytes), { lazyEntries: true }, (error, opened) =>
      error ? reject(error) : resolve(opened),
    ),
  )
  for await (const entry of zip.eachEntry()) {
    const [, name] = /^uv-[^/]+\.data\/scripts\/(uvx?)$/.exec(entry.fileName) ?? []
    if (name === undefined) continue
    const content = await buffer(await zip.openReadStreamPromise(entry))
    files.set(name, { content, isExecutable: true })
  }
  return files
}

/** Writes files to a directory, which is there when all of them are. */
async function write(files: ReadonlyMap<string, ProgramFile>, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true })
  const fresh = await mkdtemp(join(dirname(target), UNFINISHED))
  try {
    for (const [path, { content, isExecutable }] of files) {
      await mkdir(dirname(join(fresh, path)), { recursive: true })
      await writeFile(join(fresh, path), content, { mode: isExecutable ? 0o555 : 0o444 })
    }
    makeReadable(fresh)
    await rename(fresh, target)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    if (!existsSync(target)) throw error
  }
}

/** Checks the hash that a project names: of the archive, or of the program in it, as Corepack has it for Yarn. */
function checkHash(hash: string, file: string, contents: readonly (Uint8Array | undefined)[]): void {
  const [algorithm = '', digest = ''] = hash.split('.')
  const known = (['sha1', 'sha224', 'sha256', 'sha384', 'sha512'] as const).find((one) => one === algorithm)
  const matches = (content: Uint8Array | undefined): boolean =>
    known !== undefined && content !== undefined && hashOf(known, content) === digest.toLowerCase()
  if (contents.some(matches)) return
  throw new PackageError(
    `${file} does not have the hash that the project names in packageManager (${hash}).`,
    424,
  )
}

const hashOf = (algorithm: 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512', bytes: Uint8Array): string =>
  new Bun.CryptoHasher(algorithm).update(bytes).digest('hex')

/** Turns a specifier of Python's (PEP 440) into a range of versions. */
const asRange = (specifier: string): string =>
  specifier
    .split(',')
    .map((one) =>
      one
        .trim()
        .replace(/^===?\s*/, '')
        .replace(/^~=\s*/, '~')
        .replace(/\.\*$/, '.x'),
    )
    .join(' ')

const isIn = (version: string, range: string): boolean => {
  try {
    return Bun.semver.satisfies(version, range)
  } catch {
    // No range that can be read: no version is in it.
    return false
  }
}

const newestIn = (versions: readonly string[], range: string): string | null =>
  versions
    .filter((version) => isIn(version, range))
    .sort(Bun.semver.order)
    .at(-1) ?? null
