import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import type { Staging } from '../workspace.ts'
import { pinRoot } from './pinned.ts'
import { removeEntry } from './remove.ts'
import { isStale, isTemporary, temporaryName } from './temporary.ts'

/** Name of the staging directory beside a workspace. */
export const STAGING = 'staging'

/**
 * The directory beside a workspace in which berth prepares files before moving them in. It is on the workspace's file
 * system, so one rename moves a whole tree, and no sandbox sees it.
 */
export class StagingArea {
  readonly #root: string
  readonly #byDescriptor: boolean

  /** @param root absolute; made when it is first used */
  constructor(root: string, byDescriptor: boolean) {
    this.#root = root
    this.#byDescriptor = byDescriptor
  }

  /** Makes an empty directory of mode 0700. */
  make(): Staging {
    mkdirSync(this.#root, { recursive: true, mode: 0o700 })
    const name = temporaryName()
    const path = join(this.#root, name)
    mkdirSync(path, { mode: 0o700 })
    return { path, [Symbol.asyncDispose]: () => this.#remove(name) }
  }

  /** Returns a name in the area that nothing bears, for something that is moved away. */
  freshPath(): { path: string; remove(): Promise<void> } {
    mkdirSync(this.#root, { recursive: true, mode: 0o700 })
    const name = temporaryName()
    return { path: join(this.#root, name), remove: () => this.#remove(name) }
  }

  /** Reports whether a path is inside one of the area's directories. */
  holds(path: string): boolean {
    const [name, ...below] = path.startsWith(`${this.#root}/`)
      ? path.slice(this.#root.length + 1).split('/')
      : []
    return name !== undefined && isTemporary(name) && !below.includes('..')
  }

  /** Removes what killed berths left here. */
  async sweep(): Promise<void> {
    for (const name of ifPresent(() => readdirSync(this.#root)) ?? [])
      if (isStale(name)) await this.#remove(name)
  }

  async #remove(name: string): Promise<void> {
    using root = ifPresent(() => pinRoot(this.#root, this.#byDescriptor))
    // The server's whole directory is gone.
    if (root === null) return
    await removeEntry(root, name)
  }
}
