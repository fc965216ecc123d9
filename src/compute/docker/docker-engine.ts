import { sentence } from '../../runtime/error-info.ts'
import { fieldsOf, objectsOf } from '../../runtime/is-object.ts'
import type { Logger } from '../../runtime/logger.ts'
import { within } from '../../runtime/wait.ts'
import {
  CACHES_PATH,
  type Engine,
  type EngineInstance,
  type EngineInventory,
  type EngineProbe,
  EXECUTABLE_PATH,
  type InstanceSpec,
  LISTEN_PATH,
  type StorageSpec,
  WORKSPACE_PATH,
} from '../engine/engine.ts'
import { jsonLines } from '../engine/json-lines.ts'
import { digestOf, labelsFromText, labelsToText } from '../engine/names.ts'
import { EngineRefusal, explained, isRefusal } from '../engine/refusal.ts'
import { ServerGone } from '../engine/resumable.ts'
import { CARRIER_COMMAND } from '../processes.ts'
import { ComputeError } from '../sandbox.ts'
import type { FrameTransport } from '../sandboxd/transport.ts'
import type { DockerClient } from './client.ts'
import { CONTAINER_LABELS, cachesOf, containerSettings } from './container.ts'
import type { HijackedTransport } from './hijacked-transport.ts'
import { findImage, ServerImages, type ServerImagesOptions } from './server-images.ts'

/** Milliseconds that a removal may take, and between two looks whether it has ended. */
const REMOVAL_MS = 60_000
const REMOVAL_POLL_MS = 15

/** Milliseconds in which process 1 begins to run, or fails. */
const BEGIN_MS = 5_000

/** Milliseconds in which the standard error of an ended process 1 comes. */
const LAST_WORDS_MS = 1_000

/** Milliseconds after which an engine does nothing more that it was asked for by a connection which is gone. */
const LATE_MS = 300_000

/** Milliseconds after which events are asked for again, when the engine has ended them. */
const EVENTS_PAUSE_MS = 500

/** Milliseconds for a network that another berth makes to be there, and between two looks. */
const NETWORK_MS = 10_000
const NETWORK_POLL_MS = 50

/** Name of the network that berth makes, and the option of it by which servers do not reach each other. */
const BERTH_NETWORK = 'berth'
const ENABLE_ICC = 'com.docker.network.bridge.enable_icc'

/** The options of `DockerEngine`. */
interface DockerEngineOptions extends ServerImagesOptions {
  /** Whether a local Unix socket leads to it, which closes when either end is gone. */
  isLocal: boolean
  /** `none`, `berth`, or the name of a network of the engine. */
  network: string
  runtime: string | null
  logger: Logger
}

/** What is known of an engine while it is the same one. */
interface EngineFacts {
  readonly id: string
  readonly processors: number
  readonly isPodman: boolean
  readonly enforced: EngineProbe['enforced']
  readonly notes: readonly string[]
}

/** Runs servers in containers of one Docker Engine, or of Podman, which speaks the same API. */
export class DockerEngine implements Engine {
  readonly name = 'docker'
  readonly carrier: 'attach' | 'exec'
  readonly hasOwnUsers = false
  readonly leadsOutside: boolean
  readonly #options: DockerEngineOptions
  readonly #client: DockerClient
  readonly #images: ServerImages
  /** Standard output and error of process 1 of containers, and its input where that is the carrier, until one is in use. */
  readonly #attached = new Map<string, HijackedTransport>()
  /** Names of containers that the engine may still make, or has not removed, and since when it was asked to. */
  readonly #left = new Map<string, number>()
  /** Kept while the stream of its events is open: as long as that is, no other engine responds at its address. */
  #facts: Promise<EngineFacts> | null = null
  #isWatched = false

  constructor(options: DockerEngineOptions) {
    this.#options = options
    this.#client = options.client
    this.carrier = options.isLocal ? 'attach' : 'exec'
    this.leadsOutside = options.network !== 'none'
    this.#images = new ServerImages(options)
  }

  probe(): Promise<EngineProbe> {
    return this.#do('say what it can do', async () => {
      await this.#client.ping()
      const { notes, enforced } = await this.#known()
      await this.#hasNetwork()
      return {
        notes,
        network: this.leadsOutside
          ? `the network ${this.#options.network} of the engine`
          : 'own, outbound by proxy',
        enforced,
      }
    })
  }

  async identify(): Promise<string> {
    return (await this.#known()).id
  }

  removalOf(kind: 'instance' | 'storage', name: string): string {
    return kind === 'instance' ? `docker rm -f ${name}` : `docker volume rm ${name} ${cachesOf(name)}`
  }

  hasImage(reference: string): Promise<boolean> {
    return this.#do(`look for the image ${reference}`, () => this.#images.has(reference))
  }

  hasChanged(reference: string, { id }: EngineInstance): Promise<boolean> {
    return this.#do(`look for the image ${reference}`, async () => {
      const [image, container] = await Promise.all([
        findImage(this.#client, reference),
        this.#client.find(`/containers/${id}/json`),
      ])
      return image !== null && container !== null && image.Id !== container.Image
    })
  }

  createStorage({ name, labels, image }: StorageSpec): Promise<void> {
    return this.#do(`make the volume ${name}`, async () => {
      const isOwn = await this.#images.isOwn(image)
      for (const volume of [name, cachesOf(name)])
        await this.#client.send('POST', '/volumes/create', {
          body: { Name: volume, Labels: labelsToText(CONTAINER_LABELS, labels) },
        })
      // The engine gives an empty volume the owner that its image has at that path; other images have none.
      if (!isOwn) await this.#images.fill({ [name]: WORKSPACE_PATH, [cachesOf(name)]: CACHES_PATH })
    })
  }

  removeStorage(name: string): Promise<void> {
    return this.#do(`remove the volume ${name}`, async () => {
      await this.#removeLeft()
      for (const volume of [cachesOf(name), name]) await this.#untilGone(`/volumes/${volume}`)
    })
  }

  hasStorage(name: string): Promise<boolean> {
    return this.#do(
      `look for the volume ${name}`,
      async () => (await this.#client.find(`/volumes/${name}`)) !== null,
    )
  }

  run(spec: InstanceSpec): Promise<EngineInstance> {
    return this.#do('start the server', async () => {
      const [{ processors, isPodman }, isOwn, isThere] = await Promise.all([
        this.#known(),
        this.#images.isOwn(spec.image),
        this.#hasNetwork(),
      ])
      if (!isThere) await this.#makeNetwork()
      const { network, runtime } = this.#options
      const tools = isOwn ? null : await this.#images.toolsVolume()
      const settings = { carrier: this.carrier, isPodman, network, runtime, processors, tools }
      await this.#removeLeft()
      const { name, labels } = spec
      let id = name
      try {
        id = await this.#client.createContainer(name, containerSettings(spec, settings))
        // Before the start: what process 1 writes first is not kept. Without its input, to see why it does not run.
        const stdin = this.carrier === 'attach' ? '1' : '0'
        const query = { stream: '1', stdin, stdout: '1', stderr: '1' }
        this.#attached.set(id, await this.#client.hijack(`/containers/${id}/attach`, { query }))
        await this.#client.send('POST', `/containers/${id}/start`)
        return { id, name, labels, node: null }
      } catch (error) {
        this.#detach(id)
        // One that has not refused it may do it yet, when it responds again.
        if (!(error instanceof EngineRefusal)) this.#left.set(name, performance.now())
        await this.#remove(id).catch(() => this.#left.set(name, performance.now()))
        throw error
      }
    })
  }

  async connect(instance: EngineInstance): Promise<FrameTransport> {
    const { id } = instance
    const attached = this.#attached.get(id)
    if (this.carrier === 'attach') {
      this.#attached.delete(id)
      if (attached === undefined) throw new ComputeError('The connection to the server has ended.')
      return attached
    }
    try {
      const carrier = await this.#do('reach the server', () => this.#exec(instance))
      // What process 1 says while it begins is why it does not run. The carrier speaks before it does.
      setTimeout(() => this.#detach(id), BEGIN_MS).unref()
      return carrier
    } catch (error) {
      const { cause } = error as Error
      if (!isRefusal(cause, 404, 409)) throw error
      // What it has said may come after the engine's word that it has ended.
      if (attached !== undefined)
        await within(
          LAST_WORDS_MS,
          attached.spoken.catch(() => {}),
          undefined,
        )
      throw new ServerGone(`Its container has ended. ${attached?.errors ?? ''}`.trim(), { cause })
    }
  }

  remove({ id }: EngineInstance): Promise<void> {
    this.#detach(id)
    return this.#do('remove a container', () => this.#remove(id))
  }

  #detach(id: string): void {
    this.#attached.get(id)?.terminate()
    this.#attached.delete(id)
  }

  list(owner: string): Promise<EngineInventory> {
    return this.#do('list its containers', async () => {
      const filters = JSON.stringify({ label: [`${CONTAINER_LABELS}owner=${owner}`] })
      const [containers, { Volumes }] = await Promise.all([
        this.#client.json('GET', '/containers/json', { query: { all: '1', filters } }),
        this.#client.json('GET', '/volumes', { query: { filters } }).then(fieldsOf),
      ])
      const volumes = objectsOf(Volumes).map(({ Name, Labels }) => ({
        name: String(Name),
        labels: labelsFromText(CONTAINER_LABELS, Labels),
      }))
      const ofCaches = new Set(volumes.map(({ name }) => cachesOf(name)))
      return {
        instances: objectsOf(containers).map(({ Id, Names, Labels }) => ({
          id: String(Id),
          name: String(Array.isArray(Names) ? Names[0] : '').replace(/^\//, ''),
          labels: labelsFromText(CONTAINER_LABELS, Labels),
          node: null,
        })),
        // That of the caches goes with the other one.
        storages: volumes.filter(({ name }) => !ofCaches.has(name)),
      }
    })
  }

  watch(owner: string, ended: (id: string, reason: string) => void): Disposable {
    const over = new AbortController()
    void this.#watch(owner, ended, over.signal)
    return { [Symbol.dispose]: () => over.abort() }
  }

  async #watch(
    owner: string,
    ended: (id: string, reason: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    /** Containers in which the kernel has ended something for lack of memory. */
    const short = new Set<string>()
    let since: number | null = null
    while (!signal.aborted) {
      try {
        // Podman sends nothing where two kinds of events are asked for.
        const label = [`${CONTAINER_LABELS}owner=${owner}`]
        const filters = JSON.stringify({ type: ['container'], label })
        const query = { filters, ...(since === null ? {} : { since: (since / 1e9).toFixed(9) }) }
        const response = await this.#client.request('GET', '/events', { query, signal, timeoutMs: null })
        this.#isWatched = true
        for await (const event of jsonLines(response)) {
          const { Action, status, Actor, timeNano } = event
          if (typeof timeNano === 'number') since = timeNano + 1
          const { ID, Attributes } = fieldsOf(Actor)
          const id = String(ID)
          const action = Action ?? status
          if (action === 'oom') short.add(id)
          else if (action === 'die')
            ended(id, describeEnd(Number(fieldsOf(Attributes).exitCode ?? -1), short.delete(id)))
        }
      } catch (error) {
        if (!signal.aborted) this.#options.logger.debug('the events of the engine have ended', { error })
      }
      // Another engine may listen there next.
      this.#isWatched = false
      this.#facts = null
      this.#images.forget()
      if (!signal.aborted) await Bun.sleep(EVENTS_PAUSE_MS)
    }
  }

  #known(): Promise<EngineFacts> {
    if (!this.#isWatched) return this.#lookAt()
    this.#facts ??= this.#lookAt().catch((error: unknown) => {
      this.#facts = null
      throw error
    })
    return this.#facts
  }

  async #lookAt(): Promise<EngineFacts> {
    const [info, { isPodman }] = await Promise.all([
      this.#client.json('GET', '/info').then(fieldsOf),
      describe(this.#client),
    ])
    // Podman makes an id up for each response.
    const id = isPodman ? `podman:${digestOf(`${info.Name} ${info.DockerRootDir}`, 32)}` : String(info.ID)
    // Of an ordinary user's it says there that it limits all, and here that it has no control groups for that.
    const { cgroupControllers } = isPodman
      ? fieldsOf(fieldsOf(await this.#client.json('GET', '/libpod/info')).host)
      : {}
    const has = (controller: string, field: string): boolean =>
      Array.isArray(cgroupControllers) ? cgroupControllers.includes(controller) : info[field] !== false
    const enforced = {
      cpu: has('cpu', 'CpuCfsQuota') ? 'cgroup' : 'none',
      memory: has('memory', 'MemoryLimit') ? 'cgroup' : 'watchdog',
      processes: has('pids', 'PidsLimit') ? 'cgroup' : 'watchdog',
    }
    const lacks = Object.entries(enforced).flatMap(([resource, by]) => (by === 'cgroup' ? [] : [resource]))
    const notes: string[] = []
    if (lacks.length > 0)
      notes.push(
        `The engine does not limit ${lacks.join(', ')}, for which it has no control groups: berth looks itself at memory and processes, twice a second.`,
      )
    if (!String(info.SecurityOptions).includes('seccomp'))
      notes.push('The engine filters no system calls (seccomp), so servers reach more of its kernel.')
    return { id, processors: Number(info.NCPU) || 1, isPodman, enforced, notes }
  }

  async #exec({ id }: EngineInstance): Promise<HijackedTransport> {
    const command = [EXECUTABLE_PATH, CARRIER_COMMAND, LISTEN_PATH]
    const created = fieldsOf(
      await this.#client.json('POST', `/containers/${id}/exec`, {
        body: { AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: command },
      }),
    )
    return this.#client.hijack(`/exec/${created.Id}/start`, { body: { Detach: false, Tty: false } })
  }

  /** Reports whether the network of servers is there, or is berth's own, to be made yet. Throws `ComputeError` if they cannot have it. */
  async #hasNetwork(): Promise<boolean> {
    const { network, name } = this.#options
    if (network === 'none') return true
    const isOwn = network === BERTH_NETWORK
    // It takes the option, and does not do as that says.
    if (isOwn && (await this.#known()).isPodman)
      throw new ComputeError(
        `${name} is Podman, in whose networks servers reach each other. Name a network where they may with --engine-network, or leave that out.`,
      )
    const found = await this.#client.find(`/networks/${network}`)
    if (found === null && !isOwn)
      throw new ComputeError(
        `${name} has no network ${network}. Make it there, or name another with --engine-network.`,
      )
    if (isOwn && found !== null && fieldsOf(found.Options)[ENABLE_ICC] !== 'false')
      throw new ComputeError(
        `${name} has a network ${network} in which servers reach each other. Remove it with "docker network rm ${network}", and berth makes its own, or name another with --engine-network.`,
      )
    return found !== null
  }

  /** Makes berth's network, in which servers reach the outside and not each other. */
  async #makeNetwork(): Promise<void> {
    // The engine would make two networks of one name for two berths that ask at once, but not two bridges.
    const Options = { [ENABLE_ICC]: 'false', 'com.docker.network.bridge.name': `${BERTH_NETWORK}0` }
    let refusal: Error = new ComputeError(
      `Someone has removed the network ${BERTH_NETWORK} as it was made. Try again.`,
    )
    await this.#client
      .send('POST', '/networks/create', { body: { Name: BERTH_NETWORK, Driver: 'bridge', Options } })
      .catch((error: unknown) => {
        if (!isRefusal(error, 403, 409)) throw error
        refusal = error
      })
    for (const until = performance.now() + NETWORK_MS; !(await this.#hasNetwork()); ) {
      if (performance.now() > until) throw refusal
      await Bun.sleep(NETWORK_POLL_MS)
    }
  }

  /** Removes a container. @param id or its name */
  #remove(id: string): Promise<void> {
    return this.#untilGone(`/containers/${id}`, { force: '1', v: '1' })
  }

  /** Removes what was begun when the engine went away. */
  async #removeLeft(): Promise<void> {
    for (const [name, since] of this.#left) {
      await this.#remove(name)
      if (performance.now() - since > LATE_MS) this.#left.delete(name)
    }
  }

  /** Removes something; resolves when the engine does not have it any more. */
  async #untilGone(path: string, query: Record<string, string> = {}): Promise<void> {
    const until = performance.now() + REMOVAL_MS
    for (;;) {
      try {
        await this.#client.send('DELETE', path, { query })
        // Podman says so before a container that removes itself is gone.
        if ((await this.#client.find(path + (path.startsWith('/containers') ? '/json' : ''))) === null) return
      } catch (error) {
        if (isRefusal(error, 404)) return
        // Its removal is under way, or a container that uses it is being removed.
        if (!isRefusal(error, 409, 500) || performance.now() > until) throw error
      }
      await Bun.sleep(REMOVAL_POLL_MS)
    }
  }

  /** Does something, and explains a refusal. @param what as in "could not …" */
  #do<T>(what: string, act: () => Promise<T>): Promise<T> {
    return onDocker(this.#options.name, what, act)
  }
}

/** Returns what an engine is, and its system as images name it. Throws `EngineRefusal`, `EngineUnreachable`. */
export async function describe(
  client: DockerClient,
): Promise<{ description: string; platform: string; isPodman: boolean }> {
  const { Components, Version, Os, Arch } = fieldsOf(await client.json('GET', '/version'))
  const isPodman = objectsOf(Components).some(({ Name }) => String(Name).startsWith('Podman'))
  const description = `${isPodman ? 'Podman' : 'Docker Engine'} ${Version}`
  return { description, platform: `${Os}/${Arch}`, isPodman }
}

/**
 * Does something on an engine, and explains a refusal.
 *
 * @param name what a person calls the engine
 * @param what as in "could not …"
 * @throws ComputeError
 */
export const onDocker = <T>(name: string, what: string, act: () => Promise<T>): Promise<T> =>
  explained(
    `${name} could not ${what}`,
    ({ message, status }) => {
      if (/no space left on device/i.test(message))
        return ', because its disk is full. Free space there, for example with "docker system prune".'
      return `: ${sentence(message)}${status >= 500 ? ' Look at the log of the engine.' : ''}`
    },
    act,
  )

/** Says why a container has ended. */
function describeEnd(exitCode: number, wasShort: boolean): string {
  if (exitCode === 137) return wasShort ? 'It ran out of memory.' : 'Its container was killed.'
  return exitCode === 0 ? 'Its container has ended.' : `Its container has ended with status ${exitCode}.`
}
