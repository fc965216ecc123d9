import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { FileContent, FileDetails } from '../../resources/files/model.ts'
import { utf8Text } from '../../runtime/decode.ts'
import type { Client } from '../client.ts'
import { action, call, type Noun } from '../command.ts'
import { CommandError } from '../errors.ts'
import { readNamedFile } from '../local-file.ts'
import { flag, type OptionSpec } from '../options.ts'
import { formatBytes, printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { type Column, table } from '../table.ts'

const output: OptionSpec<string> = {
  placeholder: 'FILE',
  short: 'o',
  description: 'write it to this file instead',
}

const FILE_COLUMNS: readonly Column<FileDetails>[] = [
  { heading: 'PATH', cell: ({ path }) => path, elastic: true },
  { heading: 'SIZE', cell: ({ size }) => formatBytes(size), right: true },
  { heading: 'MODIFIED', cell: ({ modified_at }) => modified_at },
]

/** `berth files` */
export const filesNoun: Noun = {
  name: 'files',
  summary: "read and write a server's files",
  description:
    'Reads and writes a server\'s files. Paths are relative to its workspace. Plain "berth files" lists them all.',
  commands: [
    action({
      usage: 'list [SERVER]',
      operations: ['files.read'],
      description: 'list all files',
      access: 'api',
      options: {
        all: flag('with .git and node_modules'),
        long: flag('with sizes and times, as always on a terminal', { short: 'l' }),
      },
      async run({ session, options, connect, server, print }) {
        const { all, long } = options
        const params = { serverId: await server() }
        const details = long || (session.context.stdout.isTTY && !options.json) ? 'true' : undefined
        const query = { all: all ? 'true' : undefined, details } as const
        const list = await (await connect()).call('files.read', { params, query })
        await print(list, (_, { out, layout }) => {
          // The API lists files if the request has no path.
          if (!('files' in list)) return ''
          if (list.details !== undefined && list.details.length > 0)
            return table(out, FILE_COLUMNS, list.details, layout)
          // Programs get names unchanged. On a terminal, a name must not control the cursor.
          return list.files.map((name) => `${out.isTTY ? printable(name) : name}\n`).join('')
        })
      },
    }),
    action({
      usage: 'read [SERVER] <PATH>',
      operations: ['files.read'],
      aliases: ['cat'],
      description: 'print a file, byte for byte',
      access: 'api',
      options: { output },
      async run({ session, args: [path], options, connect, server, print }) {
        await print(await readRemote(await connect(), await server(), path), async (file) => {
          const bytes = contentBytes(file)
          if (options.output === undefined || options.output === '-') return bytes
          await saveLocal(options.output, bytes, session.context)
          return ''
        })
      },
    }),
    action({
      usage: 'write [SERVER] <PATH> [FILE]',
      operations: ['files.write'],
      aliases: ['put'],
      description: 'write a file from FILE, or from standard input',
      access: 'api',
      help: '\nWithout FILE, or with -, the content comes from standard input.',
      async run({ session, args: [path, source], connect, server, print }) {
        const bytes = await loadLocal(source, session.context)
        const client = await connect()
        const params = { serverId: await server() }
        const response = await client.call('files.write', { params, body: { path, ...encode(bytes) } })
        await print(response, (written) => `Wrote ${printable(written.path)} (${bytes.length} bytes).\n`)
      },
    }),
    call('files.delete', {
      usage: 'delete [SERVER] <PATH>',
      description: 'delete a file, or a directory with everything in it',
      request: async ([path], _, { server }) => ({ params: { serverId: await server() }, query: { path } }),
      show: ({ path }) => `Deleted ${printable(path)}.\n`,
    }),
  ],
}

/** Reads a file of a server's workspace. */
export async function readRemote(client: Client, serverId: string, path: string): Promise<FileContent> {
  const response = await client.call('files.read', { params: { serverId }, query: { path } })
  // The API reads a file if the request has a path.
  return 'content' in response ? response : { path, content: '' }
}

/** Returns the bytes of a file. */
export const contentBytes = ({ content, encoding }: FileContent): Buffer =>
  Buffer.from(content, encoding === 'base64' ? 'base64' : 'utf8')

/** Encodes bytes for the API: as text if they are UTF-8 and no longer that way, else as base64. */
export function encode(bytes: Uint8Array): { content: string; encoding?: 'base64' } {
  const base64 = (): { content: string; encoding: 'base64' } => ({
    content: Buffer.from(bytes).toString('base64'),
    encoding: 'base64',
  })
  const content = utf8Text(bytes)
  if (content === null) return base64()
  // In JSON a control character takes six bytes, in base64 it takes four thirds of one.
  return JSON.stringify(content).length > Math.ceil(bytes.length / 3) * 4 ? base64() : { content }
}

async function loadLocal(source = '-', context: ProcessContext): Promise<Uint8Array> {
  if (source === '-' && context.stdin.isTTY)
    await context.stderr.write('berth: type the content, then Ctrl-D\n')
  return readNamedFile(source, context)
}

async function saveLocal(target: string, bytes: Uint8Array, { cwd }: ProcessContext): Promise<void> {
  await writeFile(resolve(cwd, target), bytes).catch((error: Error) => {
    throw new CommandError(`${target} cannot be written: ${error.message}.`)
  })
}
