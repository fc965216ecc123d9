import { Readable } from 'node:stream'
import { BlockReader, type DirectoryOptions, entriesOf, pack, unpack } from './archive.js'
import { BerthError, ConnectionError, errorOfEvent } from './errors.js'
import type { ExecResult } from './server.js'
import type { Returned } from './shapes.js'
import { readBytes } from './stream.js'
import { type Transport, whole, withQuery } from './transport.js'

/** The files of a server. Paths are relative to its workspace. */
export class Files {
  readonly #transport: Transport
  readonly #server: string

  constructor(transport: Transport, server: string) {
    this.#transport = transport
    this.#server = server
  }

  /**
   * Lists the paths of all files.
   *
   * @param all whether those in `.git` and `node_modules` count
   */
  async list({ all = false }: { all?: boolean } = {}): Promise<string[]> {
    const path = withQuery(`${this.#server}/files`, { all: all || undefined })
    const list = await this.#transport.json<Returned<'/servers/{serverId}/files', 'get'>>('GET', path)
    return (list as { files: string[] }).files
  }

  /** Reads a file as UTF-8; bytes that are not become U+FFFD. @throws NotFoundError if it does not exist */
  async read(path: string): Promise<string> {
    return new TextDecoder().decode(await this.readBytes(path))
  }

  /** Reads the bytes of a file. @throws NotFoundError if it does not exist */
  async readBytes(path: string): Promise<Uint8Array> {
    const response = await this.#transport.send({ path: this.#content(path) })
    return new Uint8Array(await whole(response.arrayBuffer()))
  }

  /** Writes a file, with the directories that it needs. It is replaced as a whole. */
  async write(path: string, content: string | Uint8Array): Promise<void> {
    await this.#transport.send({
      method: 'PUT',
      path: this.#content(path),
      headers: { 'content-type': 'application/octet-stream' },
      body: typeof content === 'string' ? new TextEncoder().encode(content) : content,
    })
  }

  /** Deletes a file, or a directory with all that is in it. */
  async delete(path: string): Promise<void> {
    await this.#transport.json('DELETE', withQuery(`${this.#server}/files`, { path }))
  }

  /**
   * Sends a local directory. Files of it replace those on the server; others stay. `.git` and `node_modules` are not sent.
   *
   * @param local path of the directory
   * @param path the directory on the server, which is made; the workspace by default
   */
  async uploadDirectory(local: string, path = '.', options: DirectoryOptions = {}): Promise<void> {
    const archive = pack(local, await entriesOf(local, options))
    const directory = quoted(path)
    const sent = this.#transport.send({
      method: 'POST',
      path: this.#command(`mkdir -p -- ${directory} && exec tar -xzf - -C ${directory}`),
      headers: { 'content-type': 'application/octet-stream' },
      body: Readable.toWeb(archive) as ReadableStream<Uint8Array>,
    })
    const response = await sent.catch((error: unknown) => {
      // A local file that cannot be read is the cause, and not the connection that it ended.
      throw archive.errored ?? error
    })
    const { exitCode, stderr } = (await whole(response.json())) as ExecResult
    if (exitCode !== 0) throw new BerthError(`tar on the server ended with ${exitCode}: ${stderr.trim()}`)
  }

  /**
   * Fetches a directory of the server into a local one, which is made. `.git` and `node_modules` are left out, and existing files are
   * not replaced.
   *
   * @throws BerthError if the directory does not exist; Error if a local file exists, or a link of the directory leads out of it
   */
  async downloadDirectory(path: string, local: string): Promise<void> {
    const response = await this.#transport.send({
      method: 'POST',
      path: this.#command(
        `cd ${quoted(path)} && exec tar -czf - --exclude=./node_modules --exclude=./.git .`,
      ),
      headers: { 'content-type': 'application/octet-stream', accept: 'application/vnd.berth.exec' },
      body: new Uint8Array(),
    })
    await unpack(standardOutput(response), local)
  }

  #content(path: string): string {
    return withQuery(`${this.#server}/files/content`, { path })
  }

  #command(command: string): string {
    return withQuery(`${this.#server}/exec/stream`, { command })
  }
}

/** Quotes a path for the shell of a server. */
const quoted = (path: string): string =>
  `'${(path.startsWith('-') ? `./${path}` : path).replaceAll("'", `'\\''`)}'`

/**
 * Reads the standard output of a command from frames: a byte for the kind, four for the length, and as many bytes.
 *
 * @throws BerthError with what the command printed if it failed; ConnectionError if the connection breaks off
 */
async function* standardOutput(response: Response): AsyncGenerator<Uint8Array> {
  const frames = new BlockReader(readBytes(response))
  const errors: Buffer[] = []
  while (true) {
    const head = await frames.read(5)
    const content = head && (await frames.read(head.readUInt32BE(1)))
    if (!content) throw new ConnectionError('The connection broke off before the directory was whole.')
    if (head[0] === 1) yield content
    else if (head[0] === 2) errors.push(content)
    else if (head[0] === 3) {
      const { exitCode } = JSON.parse(content.toString()) as { exitCode: number }
      if (exitCode === 0) return
      throw new BerthError(
        `tar on the server ended with ${exitCode}: ${Buffer.concat(errors).toString().trim()}`,
      )
    } else throw errorOfEvent(content.toString(), response.headers.get('x-request-id'))
  }
}
