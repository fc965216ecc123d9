import { Readable } from 'node:stream'
import { type DirectoryOptions, entriesOf, pack, unpack } from './archive.js'
import { BerthError, ConnectionError } from './errors.js'
import type { ExecResult } from './server.js'
import type { Returned } from './shapes.js'
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
    const file = await this.#transport.json<{ content: string; encoding?: 'base64' }>(
      'GET',
      withQuery(`${this.#server}/files`, { path }),
    )
    return new Uint8Array(Buffer.from(file.content, file.encoding ?? 'utf8'))
  }

  /** Writes a file, with the directories that it needs. It is replaced as a whole. */
  async write(path: string, content: string | Uint8Array): Promise<void> {
    const file =
      typeof content === 'string'
        ? { content }
        : { content: Buffer.from(content).toString('base64'), encoding: 'base64' }
    await this.#transport.json('PUT', `${this.#server}/files`, { path, ...file })
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
    const response = await this.#transport.send({
      method: 'POST',
      path: this.#command(`mkdir -p -- ${directory} && exec tar -xzf - -C ${directory}`),
      headers: { 'content-type': 'application/octet-stream' },
      body: Readable.toWeb(archive) as ReadableStream<Uint8Array>,
    })
    const { exitCode, stderr } = (await whole(response.json())) as ExecResult
    if (exitCode !== 0) throw new BerthError(`tar on the server ended with ${exitCode}: ${stderr.trim()}`)
  }

  /**
   * Fetches a directory of the server into a local one, which is made. Existing files are not replaced.
   *
   * @throws Error if a local file exists, or a link of the directory leads out of it
   */
  async downloadDirectory(path: string, local: string): Promise<void> {
    const response = await this.#transport.send({
      method: 'POST',
      path: this.#command(
        `cd ${quoted(path)} && exec tar -czf - --exclude=./node_modules --exclude=./.git .`,
      ),
      headers: { 'content-type': 'application/octet-stream', accept: 'application/octet-stream' },
      body: new Uint8Array(),
    })
    if (!response.body) throw new ConnectionError('The response has no body.')
    await unpack(response.body as AsyncIterable<Uint8Array>, local).catch((error: Error) => {
      if ('code' in error && String(error.code).startsWith('E')) throw error
      throw new ConnectionError(`${path} could not be fetched: ${error.message}`, {}, { cause: error })
    })
  }

  #command(command: string): string {
    return withQuery(`${this.#server}/exec/stream`, { command })
  }
}

/** Quotes a path for the shell of a server. */
const quoted = (path: string): string =>
  `'${(path.startsWith('-') ? `./${path}` : path).replaceAll("'", `'\\''`)}'`
