import { processes as system } from '../../system/processes.ts'
import type { Limits } from '../driver.ts'
import { type Limiter, type LimitGroup, NOT_COUNTED } from './limiter.ts'

/** How many processes and threads more than its limit a server can have before the watchdog looks. */
const HEADROOM = 200

/**
 * Limits servers without a cgroup: sandboxd looks at the server's processes twice a second and ends those that exceed
 * a limit. `ownUserNamespace` says whether the kernel counts each sandbox's processes separately, so RLIMIT_NPROC
 * limits that sandbox only; it never limits root. A server with a user of the kernel's own is counted separately too.
 */
export class WatchdogLimiter implements Limiter {
  readonly enforced: Limiter['enforced']
  readonly #uid: number
  readonly #countedByKernel: boolean

  constructor(ownUserNamespace: boolean, uid: number) {
    this.#uid = uid
    this.#countedByKernel = ownUserNamespace && uid !== 0
    this.enforced = {
      cpu: 'none',
      memory: 'watchdog',
      processes: this.#countedByKernel ? 'rlimit' : 'watchdog',
    }
  }

  shownGroups(): [] {
    return []
  }

  openGroup(_serverId: string, limits: Limits, hasOwnUser = false): LimitGroup {
    const { memoryBytes, processes, storageBytes } = limits
    const ceiling = (): number => this.#ceiling(processes)
    return {
      environment: {},
      sandboxd:
        this.#countedByKernel || hasOwnUser
          ? { watch: { memoryBytes }, rlimits: { processes, fileBytes: storageBytes } }
          : {
              watch: { memoryBytes, processes },
              rlimits: {
                // Counts all processes of the machine, so only if no cgroup limits them.
                get processes() {
                  return ceiling()
                },
                fileBytes: storageBytes,
              },
            },
      enter: [],
      directories: [],
      usage: () => NOT_COUNTED,
      memoryKills: () => 0,
      close: async () => {},
    }
  }

  /**
   * Keeps a fork bomb from taking the machine before the watchdog looks. The kernel counts all that the user runs,
   * so this is no limit of the server's own; it does not hold for root.
   */
  #ceiling(processes: number): number {
    return system.countThreadsOf(this.#uid) + processes + HEADROOM
  }

  async sweep(): Promise<void> {}
}
