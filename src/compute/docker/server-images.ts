import { fieldsOf } from '../../runtime/is-object.ts'
import { systemRandom } from '../../runtime/random.ts'
import { EXECUTABLE_PATH, TOOLS_PATH } from '../engine/engine.ts'
import { ownImage } from '../engine/names.ts'
import { EngineRefusal } from '../engine/refusal.ts'
import { ComputeError } from '../sandbox.ts'
import type { DockerClient } from './client.ts'
import { volume } from './container.ts'

/** The label of an image that berth has made: its version. */
export const VERSION_LABEL = 'berth.version'

/** Milliseconds that a pull may take. */
const PULL_MS = 600_000

/** The options of `ServerImages`. */
export interface ServerImagesOptions {
  client: DockerClient
  /** What a person calls the engine, with its address. */
  name: string
  /** The version of this berth, which that of the image's executable has to be. */
  version: string
  /** Whether images that the engine lacks are pulled. */
  pulls: boolean
}

/**
 * The images of servers on one engine. Berth's own, `berth-server`, has its executable and tools, and its directories belong
 * to the user of servers. Any other image gets them from that one by volumes.
 */
export class ServerImages {
  readonly #options: ServerImagesOptions
  /** Those that the engine had, and whether they are berth's own. */
  readonly #found = new Map<string, boolean>()
  #tools: Promise<void> | null = null

  constructor(options: ServerImagesOptions) {
    this.#options = options
  }

  /** Reports whether the engine has an image. Throws `EngineRefusal`. */
  async has(reference: string): Promise<boolean> {
    return (await this.#find(reference)) !== null
  }

  /** Forgets which images the engine has. */
  forget(): void {
    this.#found.clear()
    this.#tools = null
  }

  /**
   * Reports whether an image is berth's own, having pulled it if that is permitted. Throws `ComputeError` if the engine does
   * not have it.
   */
  async isOwn(reference: string): Promise<boolean> {
    const found = await this.#find(reference)
    if (found !== null) return found
    const { pulls, name, version } = this.#options
    if (reference === ownImage(version))
      throw new ComputeError(
        `${name} has no image ${reference}, in which servers run. Make it with "berth engine prepare".`,
      )
    if (!pulls)
      throw new ComputeError(
        `${name} has no image ${reference}. Pull it there (with "docker pull ${reference}"), or start berth with --pull missing.`,
      )
    await pullImage(this.#options.client, reference)
    return (await this.#find(reference)) ?? false
  }

  /** Returns the name of the volume that has berth's tools, filled from its own image at the first call. */
  toolsVolume(): Promise<string> {
    const name = `berth-tools-${this.#options.version}`
    this.#tools ??= this.fill({ [name]: TOOLS_PATH }).catch((error: unknown) => {
      this.#tools = null
      throw error
    })
    return this.#tools.then(() => name)
  }

  /**
   * Fills empty volumes with what berth's own image has at their paths. The engine does that, and gives them the owners of
   * the directories there, as it makes a container, which never runs.
   *
   * @param volumes their paths by their names
   */
  async fill(volumes: Readonly<Record<string, string>>): Promise<void> {
    const { client, version } = this.#options
    const image = ownImage(version)
    await this.isOwn(image)
    const suffix = Buffer.from(systemRandom.bytes(6)).toString('hex')
    const id = await client.createContainer(`berth-fill-${suffix}`, {
      Image: image,
      Entrypoint: [EXECUTABLE_PATH],
      NetworkDisabled: true,
      HostConfig: {
        NetworkMode: 'none',
        Mounts: Object.entries(volumes).map(([name, path]) => volume(name, path)),
      },
    })
    await client.send('DELETE', `/containers/${id}`, { query: { force: '1' } })
  }

  /** Returns whether an image is berth's own; null if the engine does not have it. */
  async #find(reference: string): Promise<boolean | null> {
    const known = this.#found.get(reference)
    if (known !== undefined) return known
    const { client, version } = this.#options
    const image = await findImage(client, reference)
    if (image === null) return null
    const label = fieldsOf(fieldsOf(image.Config).Labels)[VERSION_LABEL]
    if (label !== undefined && label !== version)
      throw new ComputeError(
        `The image ${reference} is of berth ${String(label)}, and this is berth ${version}. Make it anew with "berth engine prepare".`,
      )
    this.#found.set(reference, label === version)
    return label === version
  }
}

/** Returns what an engine knows of an image, null if it does not have it. Throws `EngineRefusal`. */
export const findImage = (client: DockerClient, reference: string) =>
  client.find(`/images/${encodeURIComponent(reference)}/json`)

/** Has an engine pull an image. Throws `ComputeError`. */
export async function pullImage(client: DockerClient, reference: string): Promise<void> {
  const [, name = reference, tag] = /^(.*?)(?::([^:/@]+))?$/.exec(reference) ?? []
  const query = { fromImage: name, ...(name.includes('@') ? {} : { tag: tag ?? 'latest' }) }
  const failed = (said: string, cause?: unknown): ComputeError =>
    new ComputeError(
      `The engine could not pull ${reference}: ${said.replace(/\.?$/, '.')} Check its name, and whether the engine reaches the registry.`,
      { cause },
    )
  const response = await client
    .request('POST', '/images/create', { query, timeoutMs: PULL_MS })
    .catch((error) => {
      throw error instanceof EngineRefusal ? failed(error.message, error) : error
    })
  // The status is of the beginning; how it ended is in the last lines.
  const failure = /"error":"((?:[^"\\]|\\.)*)"/.exec(await response.text())?.[1]
  if (failure !== undefined) throw failed(JSON.parse(`"${failure}"`))
}
