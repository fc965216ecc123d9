import type { Limits } from '../driver.ts'
import { ComputeError } from '../sandbox.ts'
import type { FrameTransport } from '../sandboxd/transport.ts'

/** Engines that servers run on. */
export type EngineName = 'docker' | 'kubernetes'

/**
 * Runs instances, which are containers or pods, each on a storage, which is a volume or a claim. All else of a server
 * (commands, files, ports, usage) belongs to the sandboxd that is process 1 of its instance.
 *
 * Every operation throws `ComputeError`, with cause and remedy, when the engine refuses it or does not respond. Nothing
 * of what a caller passes or receives holds a credential.
 */
export interface Engine {
  readonly name: EngineName

  /**
   * How berth reaches process 1. `attach`: by its standard input and output, which `connect` returns once; when berth
   * is gone, the engine closes them and the instance ends. `exec`: by a program that the engine starts in the instance
   * and that joins process 1, for each call of `connect`.
   */
  readonly carrier: 'attach' | 'exec'

  /** Whether each server has a user of its own, whose processes the kernel counts. */
  readonly hasOwnUsers: boolean

  /** Whether the network of servers leads outside. Where it does not, berth gives them a way out over their sandboxd. */
  readonly leadsOutside: boolean

  /**
   * Returns addresses that an instance can connect to unless something keeps it from the network. Missing if it never can
   * where its network leads nowhere.
   */
  outsideOf?(instance: EngineInstance): readonly OutsideAddress[]

  /** Tries whether the engine responds and what it can do. */
  probe(): Promise<EngineProbe>

  /** Returns the engine's own id, whatever its address: another one if another engine responds there by now. */
  identify(): Promise<string>

  /** Reports whether the engine has an image; null if only a start can tell. */
  hasImage(reference: string): Promise<boolean | null>

  /**
   * Reports whether an image is another one now than the one from which an instance was started, as when it was made anew.
   * Missing if only a start can tell.
   */
  hasChanged?(reference: string, instance: EngineInstance): Promise<boolean>

  /** Creates an empty storage. Does nothing if there is one of this name. */
  createStorage(storage: StorageSpec): Promise<void>

  /** Removes a storage that no instance uses; resolves when it is gone. Does nothing if there is none. */
  removeStorage(name: string): Promise<void>

  /** Reports whether there is a storage of this name. */
  hasStorage(name: string): Promise<boolean>

  /** Returns the command by which a person removes an instance or a storage. */
  removalOf(kind: 'instance' | 'storage', name: string): string

  /**
   * Returns why the machine on which a storage is used cannot be reached, a sentence; null if it can or nothing uses the
   * storage. An engine of one machine has no such operation.
   */
  lostNode?(labels: Pick<EngineLabels, 'owner' | 'server'>, storage: string): Promise<string | null>

  /** Starts an instance. `connect` is called next; until it resolves, process 1 may still be about to run. */
  run(spec: InstanceSpec): Promise<EngineInstance>

  /**
   * Opens a carrier to process 1 of an instance, as soon as it can have one. After the end of a carrier of `exec` it may be
   * called again.
   */
  connect(instance: EngineInstance): Promise<FrameTransport>

  /**
   * Ends an instance and removes it; resolves when it is really gone, so that another may use its storage. Does nothing
   * if it is gone, or if another one has its name.
   */
  remove(instance: EngineInstance): Promise<void>

  /** Lists what is labelled with an owner. */
  list(owner: string): Promise<EngineInventory>

  /**
   * Reports the ends of instances of an owner, from now on. Goes on by itself after the engine was away; ends that it
   * missed meanwhile are reported too, where the engine still knows of them.
   *
   * @param ended receives the id of an instance that has ended, and why as a sentence for a person
   */
  watch(owner: string, ended: (id: string, reason: string) => void): Disposable
}

/** An address that is not the instance's own. */
export interface OutsideAddress {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
}

/** No machine that can be reached has a storage. */
export class StorageLost extends ComputeError {
  /** @param reason sentences, without the remedy */
  constructor(
    readonly reason: string,
    remedy = '',
  ) {
    super(reason + remedy)
  }
}

/** What an engine can do. */
export interface EngineProbe {
  /** The network of servers, in words of `Enforced`. */
  readonly network: string
  /** The mechanisms that enforce the limits, as `Enforced` names them. */
  readonly enforced: { readonly cpu: string; readonly memory: string; readonly processes: string }
  /** Ways in which it isolates less than it could, each a sentence. */
  readonly notes: readonly string[]
}

/** What identifies the storages and instances of a berth on the engine. */
export interface EngineLabels {
  /** The id of the data directory: 16 hex digits. Other berths on the same engine have another one. */
  readonly owner: string
  /** The server's id, such as `srv_6fJ0…`. */
  readonly server: string
  /** Whether the data directory is removed when its berth ends, so that what is left belongs to nobody. */
  readonly ephemeral: boolean
}

/** A storage to create. */
export interface StorageSpec {
  /** At most 63 of `a-z`, `0-9` and `-`. */
  readonly name: string
  readonly labels: EngineLabels
  /** Bytes of files that it should hold, where the engine can limit them. */
  readonly bytes: number
  /** The image of its instances, whose user has to be able to write to it. */
  readonly image: string
}

/** An instance to run: sandboxd as process 1, on a storage. */
export interface InstanceSpec {
  /** At most 63 of `a-z`, `0-9` and `-`; different for each run. */
  readonly name: string
  readonly labels: EngineLabels
  /** Reference of the image. */
  readonly image: string
  /** Name of the storage, to be mounted at `WORKSPACE_PATH`. */
  readonly storage: string
  /** Arguments of berth's executable, `EXECUTABLE_PATH`. */
  readonly args: readonly string[]
  /** Variables of process 1, in place of those that the image sets. Never a secret. */
  readonly env: Readonly<Record<string, string>>
  /** What the server may use. sandboxd's own memory and processes are in addition to it: `SANDBOXD_SHARE`. */
  readonly limits: Limits
  /** Numeric user of process 1 and of commands; 0 is root, so that they can install packages of the system. */
  readonly user: number
}

/** An instance that was started. Plain data. */
export interface EngineInstance {
  /** The engine's own id of it, which no later one has: a container's id, or a pod's uid. */
  readonly id: string
  readonly name: string
  readonly labels: EngineLabels
  /** The machine on which it runs, as the engine names it; null if the engine has one alone or has not chosen yet. */
  readonly node: string | null
  /** Names of further variables of process 1 that the engine has set, in the place of its image; none by default. */
  readonly variables?: readonly string[]
}

/** What an engine has of an owner. */
export interface EngineInventory {
  readonly storages: readonly { readonly name: string; readonly labels: EngineLabels }[]
  readonly instances: readonly EngineInstance[]
}

/** Absolute path of a server's workspace in its instance. */
export const WORKSPACE_PATH = '/workspace'

/** Absolute path of the directory of a server's caches in its instance, which an engine may keep from one to the next. */
export const CACHES_PATH = '/var/cache/berth'

/** Absolute path of the socket at which process 1 accepts carriers of `exec`: where every user may write in every image. */
export const LISTEN_PATH = '/dev/shm/.berth.sock'

/** Absolute path in the image of the directory with berth's tools. */
export const TOOLS_PATH = '/opt/berth'

/** Absolute path of berth's executable in the image. */
export const EXECUTABLE_PATH = '/opt/berth/lib/berth'

/** The PATH of an image that sets none. */
export const IMAGE_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Numeric group of commands that are not root, and their user unless each server has one of its own. */
export const SERVER_USER = 1000

/** Returns the line of /etc/passwd by which programs find the name and home of a server's user. */
export const lineOfUser = (user: number): string =>
  `berth:x:${user}:${SERVER_USER}:berth:${WORKSPACE_PATH}:/bin/sh\n`

/**
 * What an instance has in addition to the server's limits: for sandboxd itself, and so many processes more than its threads
 * that it sees a server exceed its limit before the kernel refuses another one.
 */
export const SANDBOXD_SHARE = { memoryBytes: 64 * 2 ** 20, processes: 128 } as const

/**
 * Capabilities of root in a server, where the person allows root: those that installing a package of the system needs, and
 * none that reaches outside of the container.
 */
export const ROOT_CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'SETGID',
  'SETUID',
  'KILL',
  'NET_BIND_SERVICE',
]
