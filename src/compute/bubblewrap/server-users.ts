import { closeSync, readFileSync } from 'node:fs'
import { ifPresent } from '../../runtime/if-present.ts'
import { loadKernelCalls } from './kernel-calls.ts'

/** User ids, as `first` and the number of them. */
interface Range {
  first: number
  count: number
}

/**
 * Ids that systems give to no user and no container, in the order of preference. The first are above those of
 * directory services (sssd) and below those of systemd; in a container that has only 65,536, the second.
 */
const CANDIDATES: readonly Range[] = [
  { first: 0x7800_0000, count: 0x7fd_0000 },
  { first: 40_000, count: 20_000 },
]

/** Ids that one berth takes at a time: more than it can run servers. */
const BLOCK = 4096

/** How many blocks are tried. */
const ATTEMPTS = 16

/** Number of the user inside a sandbox. */
const USER = 1000

/** A user of the kernel's that one server has for itself, while it runs. */
export interface ServerUser {
  /** The kernel's number of it. */
  readonly id: number
  /** Descriptor of the sandbox's user namespace, open until the workspace is attached. */
  readonly namespace: number
  /** Shows the directories in the sandbox that a process is in, with files of berth's user as this user's. */
  attachWorkspace(pid: number): void
  /** Gives the user back. Its processes have ended. May be called again. */
  release(): void
}

/**
 * Gives every server of a berth that runs as root a user of the kernel's own. So the kernel judges its commands as an
 * unprivileged user, and counts what they take of limits for each user apart from other servers and the machine's root.
 *
 * Nothing on the disk belongs to these users: a server sees its workspace by an idmapped mount (mount_setattr(2)), on
 * which files of root are its user's. So it does not matter which user a server has the next time.
 */
export class ServerUsers {
  readonly #calls = loadKernelCalls()
  /** The ids that this berth may give, with the descriptor that keeps others from them; null while it gives none. */
  #block: { first: number; claim: number } | null = null
  readonly #taken = new Set<number>()
  #last = 0

  /**
   * Returns a user that no other server has.
   *
   * @param directories absolute paths of the server's directories, by their paths in the sandbox
   * @throws Error if the kernel or the file system refuses
   */
  take(directories: Readonly<Record<string, string>>): ServerUser {
    const id = this.#takeId()
    const open: number[] = []
    const close = (): void => {
      for (const descriptor of open.splice(0)) closeSync(descriptor)
    }
    let released = false
    const release = (): void => {
      close()
      // The id may be another server's by now.
      if (!released) this.#giveBack(id)
      released = true
    }
    const keep = (descriptor: number): number => {
      open.push(descriptor)
      return descriptor
    }
    try {
      // With root in it bwrap can mount what only root can reach, such as the data directory. Nobody becomes root there.
      const namespace = keep(this.#calls.makeUserNamespace(`0 0 1\n${USER} ${id} 1\n`, id))
      const owners = keep(this.#calls.makeUserNamespace(`0 ${id} 1\n`, id))
      const mounts = Object.entries(directories).map(
        ([inside, path]) => [inside, keep(this.#calls.mapMount(path, owners))] as const,
      )
      const attachWorkspace = (pid: number): void => {
        for (const [inside, mount] of mounts) this.#calls.attachMount(mount, pid, inside)
        close()
      }
      return { id, namespace, attachWorkspace, release }
    } catch (error) {
      release()
      throw error
    }
  }

  #takeId(): number {
    this.#block ??= this.#claimBlock()
    const { first } = this.#block
    for (let tried = 0; tried < BLOCK; tried += 1) {
      this.#last = (this.#last + 1) % BLOCK
      const id = first + this.#last
      if (this.#taken.has(id)) continue
      this.#taken.add(id)
      return id
    }
    throw new Error('all user ids are in use')
  }

  #giveBack(id: number): void {
    this.#taken.delete(id)
    if (this.#taken.size > 0 || this.#block === null) return
    closeSync(this.#block.claim)
    this.#block = null
  }

  /** Claims a block that no other berth of the machine has. */
  #claimBlock(): { first: number; claim: number } {
    const range = CANDIDATES.find(isMapped)
    if (range === undefined) throw new Error('no user ids are left to this system (see /proc/self/uid_map)')
    const blocks = Math.floor(range.count / BLOCK)
    const [offset = 0] = crypto.getRandomValues(new Uint32Array(1))
    for (let attempt = 0; attempt < Math.min(ATTEMPTS, blocks); attempt += 1) {
      const first = range.first + ((offset + attempt) % blocks) * BLOCK
      const claim = isAssigned(first) ? null : this.#calls.claim(`berth-users-${first}`)
      if (claim !== null) return { first, claim }
    }
    throw new Error('other instances of berth have all the user ids')
  }
}

/** Reports whether an id is one that only servers have, or in a small container may have. */
export const isServerUser = (id: number): boolean =>
  CANDIDATES.some(({ first, count }) => id >= first && id < first + count)

/** Reports whether a range exists as users and as groups in this process's user namespace. */
function isMapped({ first, count }: Range): boolean {
  return ['uid_map', 'gid_map'].every((file) =>
    readFileSync(`/proc/self/${file}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number))
      .some(([start = 0, , length = 0]) => start <= first && first + count <= start + length),
  )
}

/** Reports whether the system has a user or a group with an id of a block. */
function isAssigned(first: number): boolean {
  return ['/etc/passwd', '/etc/group'].some((file) =>
    (ifPresent(() => readFileSync(file, 'utf8')) ?? '').split('\n').some((line) => {
      const id = Number(line.split(':')[2])
      return id >= first && id < first + BLOCK
    }),
  )
}
