import { messageOf } from '../../runtime/error-info.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { ServerUser, ServerUsers } from './server-users.ts'

/** Said once if berth is root and its servers cannot have other users. */
const WITHOUT_USERS =
  "To the kernel, servers' commands are of the user root, and share its limits with each other"

/** A user of the kernel's that a sandbox has for itself. */
export interface OwnUser extends ServerUser {
  /** Command prefix by which a process of root becomes the user. */
  readonly become: readonly string[]
}

/**
 * Gives servers users of the kernel's own as long as that works: it takes a berth that is root, and a machine that
 * permits it. Whether it does shows when the first server starts.
 */
export class OwnUsers {
  readonly #path: string
  readonly #logger: Logger
  #state: 'untried' | 'proven' | 'given up'
  #users: ServerUsers | null = null

  constructor({ path, logger }: { path: string; logger: Logger }) {
    this.#path = path
    this.#logger = logger
    this.#state = process.getuid?.() === 0 ? 'untried' : 'given up'
  }

  /** Whether a server has started with a user of its own, so each can. */
  get areProven(): boolean {
    return this.#state === 'proven'
  }

  /** Gives no more users from now on, and logs why. */
  giveUp(reason: string): void {
    if (this.#state !== 'given up') this.#logger.warn(`${WITHOUT_USERS}: ${reason}`)
    this.#state = 'given up'
  }

  /**
   * Returns a user that no other server has; null if servers have berth's.
   *
   * @param directories absolute paths of the server's directories, by their paths in the sandbox
   * @throws Error if there is none for this server, though others have one
   */
  async take(directories: Readonly<Record<string, string>>): Promise<OwnUser | null> {
    if (this.#state === 'given up') return null
    try {
      const unshare = Bun.which('unshare', { PATH: this.#path })
      if (unshare === null) throw new Error('unshare (package util-linux) is not installed.')
      const { ServerUsers } = await import('./server-users.ts')
      this.#users ??= new ServerUsers()
      const user = this.#users.take(directories)
      const attachWorkspace = (pid: number): void => {
        user.attachWorkspace(pid)
        if (this.#state === 'untried') this.#state = 'proven'
      }
      // The kernel ends process 1 of the sandbox together with bwrap only if both have the same user.
      // Without a namespace to make, unshare only changes the user, in half the time of setpriv, which looks for names.
      const become = [unshare, `--setgid=${user.id}`, `--setuid=${user.id}`]
      return { ...user, attachWorkspace, become }
    } catch (error) {
      if (this.areProven) throw error
      this.giveUp(messageOf(error))
      return null
    }
  }
}
