import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'

/** The methods that fail: those that read or change content. Looking is still possible. */
const FAILING: readonly (keyof Workspace)[] = ['read', 'open', 'write', 'remove', 'staging', 'moveIn']

/** A workspace whose files cannot be read or changed. */
export const brokenWorkspace = (inner: Workspace, error: Error): Workspace =>
  new Proxy(inner, {
    get(target, name) {
      if ((FAILING as readonly unknown[]).includes(name)) return () => Promise.reject(error)
      const method = target[name as keyof Workspace] as (...args: unknown[]) => unknown
      return method.bind(target)
    },
  })

/**
 * Returns a workspace whose storage counts as full: `reserved` of its `limit` bytes are in use by no file. Removing
 * files makes room, as on any disk.
 */
export function fullWorkspace(
  inner: Workspace,
  { limit, reserved }: { limit: number; reserved: number },
): Workspace {
  const usage = async (): Promise<number> => (await inner.usage()) + reserved
  const refusal = (): WorkspaceError =>
    new WorkspaceError('disk_full', 'No space is left in the storage of the server.')
  return {
    list: (options) => inner.list(options),
    read: (path) => inner.read(path),
    open: (path) => inner.open(path),
    unchanged: (path, identity) => inner.unchanged(path, identity),
    entries: (path) => inner.entries(path),
    async write(path, content) {
      const replaced = (await inner.stat(path).catch(() => null))?.size ?? 0
      if (content.length > 0 && (await usage()) - replaced + content.length > limit) throw refusal()
      await inner.write(path, content)
    },
    remove: (path) => inner.remove(path),
    stat: (path) => inner.stat(path),
    staging: () => inner.staging(),
    async moveIn() {
      throw refusal()
    },
    watch: (path, options) => inner.watch(path, options),
    usage,
  }
}
