import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'

/** The methods that fail: those that read or change content. Looking is still possible. */
const FAILING: readonly (keyof Workspace)[] = [
  ...(['read', 'open', 'write', 'remove', 'staging', 'moveIn'] as const),
  'unpack',
]

/** Returns a workspace whose files cannot be read or changed. */
export const brokenWorkspace = (inner: Workspace, error: Error): Workspace =>
  new Proxy(inner, {
    get(target, name) {
      if (name === 'pack')
        return () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) })
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
    manifest: (directory, paths) => inner.manifest(directory, paths),
    read: (path) => inner.read(path),
    open: (path) => inner.open(path),
    unchanged: (path, identity) => inner.unchanged(path, identity),
    entries: (path) => inner.entries(path),
    async write(path, content) {
      const replaced = (await inner.stat(path).catch(() => null))?.size ?? 0
      const room = limit - (await usage()) + replaced
      if (content instanceof Uint8Array) {
        if (content.length > Math.max(0, room)) throw refusal()
        await inner.write(path, content)
      } else await inner.write(path, upTo(room, content, refusal))
    },
    remove: (path) => inner.remove(path),
    stat: (path) => inner.stat(path),
    staging: (options) => inner.staging(options),
    stagingNamed: (name) => inner.stagingNamed(name),
    async moveIn() {
      throw refusal()
    },
    async mergeIn() {
      throw refusal()
    },
    pack: () => inner.pack(),
    async unpack() {
      throw refusal()
    },
    watch: (path, options) => inner.watch(path, options),
    usage,
  }
}

/** Passes bytes on. Throws `refusal()` if they are more than there is room for. */
async function* upTo(
  room: number,
  content: AsyncIterable<Uint8Array>,
  refusal: () => WorkspaceError,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > Math.max(0, room)) throw refusal()
    yield chunk
  }
}
