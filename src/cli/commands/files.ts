import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { FileContent } from '../../resources/files/model.ts'
import { CommandError } from '../errors.ts'
import type { ConnectionOptions } from '../instance.ts'
import { printable } from '../output.ts'
import { path } from '../path.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'
import type { Terminal } from '../terminal.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  all?: boolean
  output?: string
}

/** Adds `files` and what can be done with them. */
export function registerFiles(program: Command, session: Session): void {
  const { terminal } = session
  const { stdout } = terminal
  const files = program
    .command('files')
    .helpCommand(false)
    .summary("read and write a server's files")
    .description("Reads and writes a server's files. Paths are relative to its workspace.")
  const add = (usage: string, alias: string, description: string) =>
    withConnection(withJson(files.command(usage).alias(alias).description(description)))

  add('list <SERVER>', 'ls', 'list all files')
    .option('--all', 'with .git and node_modules')
    .action(async (server: string, options: Options) => {
      const client = await connect(session, options)
      const query: Record<string, string> = options.all ? { all: 'true' } : {}
      const answer = await client.request<{ files: string[] }>('GET', path`/servers/${server}/files`, {
        query,
      })
      if (options.json) return printJson(session, answer)
      // A program gets each name as it is; on a terminal a name must not be able to control it.
      const lines = answer.files.map((name) => `${stdout.isTTY ? printable(name) : name}\n`)
      await stdout.write(lines.join(''))
    })

  add('read <SERVER> <PATH>', 'cat', 'print a file, byte for byte')
    .option('-o, --output <FILE>', 'write it to this file instead')
    .action(async (server: string, file: string, options: Options) => {
      const client = await connect(session, options)
      const answer = await client.request<FileContent>('GET', path`/servers/${server}/files`, {
        query: { path: file },
      })
      if (options.json) return printJson(session, answer)
      const bytes = Buffer.from(answer.content, answer.encoding === 'base64' ? 'base64' : 'utf8')
      if (options.output === undefined || options.output === '-') return stdout.write(bytes)
      await saveLocal(options.output, bytes, terminal)
    })

  add('write <SERVER> <PATH> [FILE]', 'put', 'write a file from FILE, or from standard input')
    .addHelpText('after', '\nWithout FILE, or with -, the content comes from standard input.')
    .action(async (server: string, file: string, source: string | undefined, options: Options) => {
      const bytes = await loadLocal(source, terminal)
      const client = await connect(session, options)
      const answer = await client.request<{ path: string }>('PUT', path`/servers/${server}/files`, {
        body: { path: file, ...encode(bytes) },
      })
      if (options.json) return printJson(session, answer)
      await stdout.write(`Wrote ${printable(answer.path)} (${bytes.length} bytes).\n`)
    })

  add('delete <SERVER> <PATH>', 'rm', 'delete a file, or a folder with everything in it').action(
    async (server: string, file: string, options: Options) => {
      const client = await connect(session, options)
      const answer = await client.request<{ path: string }>('DELETE', path`/servers/${server}/files`, {
        query: { path: file },
      })
      if (options.json) return printJson(session, answer)
      await stdout.write(`Deleted ${printable(answer.path)}.\n`)
    },
  )
}

/** Bytes as the API takes them: text where they are UTF-8 and no longer so, else base64. */
function encode(bytes: Uint8Array): { content: string; encoding?: 'base64' } {
  const base64 = (): { content: string; encoding: 'base64' } => ({
    content: Buffer.from(bytes).toString('base64'),
    encoding: 'base64',
  })
  try {
    const content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    // In JSON a control character takes six bytes, in base64 it takes four thirds of one.
    return JSON.stringify(content).length > Math.ceil(bytes.length / 3) * 4 ? base64() : { content }
  } catch {
    return base64()
  }
}

async function loadLocal(source: string | undefined, { stdin, stderr, cwd }: Terminal): Promise<Uint8Array> {
  if (source !== undefined && source !== '-') {
    return readFile(resolve(cwd, source)).catch((error: Error) => {
      throw new CommandError(`${source} cannot be read: ${error.message}.`)
    })
  }
  if (stdin.isTTY) await stderr.write('berth: type the content, then Ctrl-D\n')
  return stdin.bytes()
}

async function saveLocal(target: string, bytes: Uint8Array, { cwd }: Terminal): Promise<void> {
  await writeFile(resolve(cwd, target), bytes).catch((error: Error) => {
    throw new CommandError(`${target} cannot be written: ${error.message}.`)
  })
}
