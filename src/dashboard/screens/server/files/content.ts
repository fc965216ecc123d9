import type { ApiClient } from '../../../api/client.ts'

/** A file as it is read: a text, or bytes that are none. */
export type FileContent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array<ArrayBuffer> }

/** Characters of a text above which the editor would be slow. */
export const MAX_EDITED = 2_000_000

/** Reads a file of a server. */
export async function readFile(api: ApiClient, serverId: string, path: string): Promise<FileContent> {
  const file = await api.call('files.read', { params: { serverId }, query: { path } })
  if (!('content' in file)) throw new Error(`${path} is a directory.`)
  if (file.encoding === 'base64') return { kind: 'bytes', bytes: Uint8Array.fromBase64(file.content) }
  return { kind: 'text', text: file.content }
}

/** Writes a text file of a server. */
export async function writeText(
  api: ApiClient,
  serverId: string,
  path: string,
  content: string,
): Promise<void> {
  await api.call('files.write', { params: { serverId }, body: { path, content } })
}

/** Writes a file of this machine to a server, whatever is in it. */
export async function upload(api: ApiClient, serverId: string, path: string, file: File): Promise<void> {
  const content = new Uint8Array(await file.arrayBuffer()).toBase64()
  await api.call('files.write', { params: { serverId }, body: { path, content, encoding: 'base64' } })
}

/** Has the browser save a file. */
export function download(path: string, content: FileContent): void {
  const blob = new Blob([content.kind === 'text' ? content.text : content.bytes])
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = path.slice(path.lastIndexOf('/') + 1)
  link.click()
  URL.revokeObjectURL(url)
}
