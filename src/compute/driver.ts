import type { ComputeName } from '../config/compute.ts'
import type { Isolation } from '../config/config.ts'
import type { Connection } from '../runtime/connection.ts'
import type { Sandbox, ServerHandle } from './sandbox.ts'
import type { Workspace } from './workspace.ts'

export type { ServerHandle }

/** What one server may use. The server's tier sets the values. */
export interface Limits {
  /** Processor cores, may be fractional. */
  cpus: number
  /** Bytes of memory for all its processes together. */
  memoryBytes: number
  /** Processes and threads at a time. */
  processes: number
  /** Bytes of files in its workspace. */
  storageBytes: number
}

/** What a caller may choose of a server's system, where servers have one of their own. */
export interface ServerWish {
  /** The image to start from; null for the driver's own. */
  readonly image: string | null
  /** Whether its commands run as root of its container. */
  readonly root: boolean
}

/** The wish of who chooses nothing. */
export const NO_WISH: ServerWish = { image: null, root: false }

/** Where a server is, as far as its driver knows without asking. */
export interface Placement extends ServerWish {
  /** The machine that it is on; null if that is this one, or not known. */
  readonly node: string | null
  /** Why it cannot be reached, in one sentence; null if nothing is known to be wrong. */
  readonly cause: string | null
}

/**
 * The limits that really hold on this machine, named by mechanism (`cgroup`, `watchdog`, `rlimit`, …); `none` if
 * nothing enforces one.
 */
export interface Enforced {
  isolation: IsolationName
  cpu: string
  memory: string
  processes: string
  disk: string
  network: string
  /** Whom the kernel takes a server's processes for. */
  user: string
}

/** Outcome of a driver's probe: it ran the real thing once, it did not read settings. */
export type Probe =
  | {
      available: true
      /** Whether each server has its own network, or shares this machine's. */
      network: 'own' | 'shared'
      /**
       * Returns the limits that hold under this driver. Finds them out at the first call, so a start need not wait
       * for it.
       */
      enforced(): Promise<Enforced>
      /** Ways in which this isolation is weaker here than its name promises, each a sentence for a person. */
      notes?: readonly string[]
    }
  | {
      available: false
      /** What is missing or refused, in one sentence. */
      reason: string
      /** What a person can do about it, in one sentence. */
      remedy: string
    }

/**
 * What earlier berths left, as it was at one moment. Nothing that is made after that moment belongs to it, so a request
 * can make something while the rest is being removed.
 */
export interface Remains {
  /**
   * Ids of directories that no server owns and that may hold somebody's files, as after the loss of the database. They
   * stay.
   */
  readonly kept: readonly string[]

  /** Ends all processes that earlier berths left running. */
  readonly end: () => Promise<void>

  /** Removes the empty directories of servers whose creation a kill interrupted, and unfinished work in those of servers. */
  readonly remove: () => Promise<void>
}

/**
 * Name of what separates servers: an isolation of this machine, or what an engine runs them in. Seatbelt's says that we have
 * never run it.
 */
export type IsolationName = Exclude<Isolation, 'seatbelt'> | 'seatbelt (untested)' | 'container' | 'pod'

/** Name of a driver: of an isolation of this machine, or of what else runs servers. */
export type DriverName = Isolation | Exclude<ComputeName, 'local'>

/** Returns where the servers of a driver run, and what separates them. */
export function kindOf(driver: DriverName): { compute: ComputeName; isolation: IsolationName } {
  if (driver === 'docker') return { compute: driver, isolation: 'container' }
  if (driver === 'kubernetes') return { compute: driver, isolation: 'pod' }
  return { compute: 'local', isolation: driver === 'seatbelt' ? 'seatbelt (untested)' : driver }
}

/** A server whose files cannot be had any more. */
export interface FileLoss {
  /** Why, a sentence. */
  readonly cause: string
  /** Whether that was seen. Of an engine that cannot be reached, or in whose place another is, only a person can know it. */
  readonly isSeen: boolean
  /** What it has on its engine, which stays, each with the command by which a person removes it. */
  readonly left: readonly { readonly name: string; readonly remedy: string }[]
}

/** One way to run servers' code and keep their files. Implementations pass the suite in test/compute/conformance.ts. */
export interface ComputeDriver {
  readonly name: DriverName

  /**
   * Whether the servers' files are in the data directory, so that a copy of it has them. Otherwise they are packed and
   * unpacked by `workspace`.
   */
  readonly keepsFilesHere: boolean

  /** Tries the real thing once. Never throws. */
  probe(): Promise<Probe>

  /**
   * Makes an empty workspace for a new server. Until `keep`, it is removed by the next start if it is still empty. Where
   * `keepsFilesHere` is false, one server may have several at a time, as when another state is being prepared.
   *
   * @param wish `NO_WISH` by default, and always for servers that see this machine's system
   * @param storageBytes what the workspace should be able to hold, where room is set aside for it
   */
  create(serverId: string, wish?: ServerWish, storageBytes?: number): Promise<ServerHandle>

  /** Makes the files somebody's: from now on only `destroy` removes them. To be called before a caller gets the server. */
  keep(handle: ServerHandle): void

  /**
   * Starts the server's sandbox; resolves when it takes commands. Throws `ComputeError`. The sandbox has another handle
   * if the server has been placed anew, which takes the place of this one.
   */
  start(serverId: string, handle: ServerHandle, limits: Limits): Promise<Sandbox>

  /**
   * Reports whether the server's sandbox would start with another system by now than it runs with. A driver without it starts
   * each with the same. Never throws.
   */
  isOutdated?(handle: ServerHandle): Promise<boolean>

  /** Returns the server's files, whether it runs or not. */
  workspace(handle: ServerHandle): Workspace

  /** Returns what is known of where the server is. */
  placement(handle: ServerHandle): Placement

  /**
   * Returns why the server's files cannot be had any more, as when the node that has them is lost; null if they can. A driver
   * without it has them as long as `checkFiles` resolves. Throws `ComputeError` if they are there, and cannot be reached.
   */
  lossOf?(handle: ServerHandle): Promise<FileLoss | null>

  /** Removes what is in the server's caches, to make room; its programs may be writing there. */
  emptyCaches(handle: ServerHandle): Promise<void>

  /** Reports whether the server's files can be read without starting something for that; missing if they always can. */
  filesAreOpen?(handle: ServerHandle): boolean

  /** Throws `ComputeError` if the server's files are gone, as when a person has removed their directory. */
  checkFiles(handle: ServerHandle): Promise<void>

  /**
   * Lists what earlier berths left. To be called before anything is made.
   *
   * @param servers those that have a record
   * @param deleted those whose record was deleted, and which may not have been destroyed
   */
  takeStock(servers: readonly ServerHandle[], deleted: readonly ServerHandle[]): Remains

  /**
   * Returns the ids of the servers that have files elsewhere, whether a record names them or not, without those that never
   * were anybody's. A driver without it keeps files in the data directory only. Throws `ComputeError`.
   */
  stored?(): Promise<readonly string[]>

  /**
   * Removes everything that belongs to the server, whose sandbox must be stopped. Does nothing if it is already
   * removed.
   */
  destroy(handle: ServerHandle): Promise<void>

  /**
   * Ends what the driver itself keeps, such as connections, once no server runs, and removes what servers have elsewhere
   * if the data directory is removed too. A driver without it keeps nothing. Never throws.
   */
  close?(): Promise<void>

  /**
   * Finds where the program is that has the other end of a connection to this process. Returns `elsewhere` if the machine
   * cannot tell. The driver inspects the system; it does not ask the sandbox.
   */
  senderOf(connection: Connection): Promise<Sender>
}

/**
 * Where the program is that has sent something: on a server, or elsewhere. `unknown` if the connection is closed, or if the
 * program hides who it is, as one on a server may.
 */
export type Sender = 'server' | 'unknown' | 'elsewhere'
