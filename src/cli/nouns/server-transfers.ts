import { lstat, open, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import { codeOf } from '../../runtime/error-info.ts'
import { action } from '../command.ts'
import { askYes } from '../confirm.ts'
import type { CopyProgress } from '../copy/progress.ts'
import { CommandError } from '../errors.ts'
import { untilInterrupted } from '../interrupt.ts'
import { unreadable } from '../local-file.ts'
import { choiceOption, flag, textOption } from '../options.ts'
import { count, formatBytes, printable } from '../output.ts'
import { isInteractive, type ProcessContext } from '../process-context.ts'
import { showWhile } from '../status-line.ts'

/** The media type of archives of servers. */
const ARCHIVE_TYPE = 'application/octet-stream'

/** Beginning of the name of an archive that is not complete. */
const PARTIAL = '.berth-export-'

const TIERS = ['small', 'medium', 'large'] as const
const REGIONS = ['us-east', 'us-west', 'eu-west'] as const

/** `berth servers export` */
export const exportServer = action({
  usage: 'export [SERVER] <FILE>',
  operations: ['control.servers.export'],
  description: 'write a server with its files to an archive',
  access: 'control',
  json: null,
  arguments: { FILE: { description: 'the archive, a tar; - is standard output' } },
  options: { force: flag('replace a file that is there') },
  help: `
The archive has the files, what the server is, and a manifest with the hash of
each file; projects and tasks are not in it. A server that runs stands still
meanwhile. FILE is written whole or not at all.

  berth servers export shop shop.tar
  berth servers export shop - | ssh backup 'cat > shop.tar'
`,
  run: ({ session: { context }, args: [file], options: { force }, connect, server }) =>
    untilInterrupted(async (signal) => {
      const client = await connect()
      const params = { serverId: await server() }
      const { CopyProgress } = await import('../copy/progress.ts')
      using progress = new CopyProgress(context.stderr)
      const bytes = progress.count(client.bytes('control.servers.export', ARCHIVE_TYPE, { params, signal }))
      if (file === '-') {
        for await (const chunk of bytes) await context.stdout.write(chunk)
        return 0
      }
      await writeNew(resolve(context.cwd, file), file, bytes, force === true)
      progress[Symbol.dispose]()
      await context.stdout.write(`Exported ${params.serverId} to ${printable(file)}: ${progress.volume()}.\n`)
      return 0
    }),
})

/** `berth servers import` */
export const importServer = action({
  usage: 'import <FILE> [LABEL]',
  operations: ['control.servers.import'],
  description: 'make a new server from an archive',
  access: 'control',
  arguments: {
    FILE: { description: 'the archive, as export has written it; - is standard input' },
    LABEL: { description: 'what it is called; as the exported server by default' },
  },
  options: {
    tier: choiceOption('TIER', 'small, medium or large', TIERS),
    region: choiceOption('REGION', 'us-east, us-west or eu-west', REGIONS),
    image: textOption('IMAGE', 'image of a server on an engine'),
    root: flag('run its commands as root of its container'),
    account: textOption('ACCOUNT', 'whose it is (default the first account)'),
    quiet: flag('print only the id', { short: 'q' }),
  },
  help: `
Options take the place of what the archive says. Every byte is compared with
the manifest: a damaged archive leaves no server.
`,
  run: ({ session: { context }, args: [file, task], options, connect, print }) =>
    untilInterrupted(async (signal) => {
      const { tier, region, image, root, account, quiet } = options
      const client = await connect()
      const { CopyProgress } = await import('../copy/progress.ts')
      using progress = new CopyProgress(context.stderr)
      const made = await client.call('control.servers.import', {
        query: {
          ...{ task, tier, region, image, account_id: account },
          ...(root === true && { root: 'true' as const }),
        },
        bytes: await readArchive(file, context, progress),
        signal,
      })
      progress[Symbol.dispose]()
      return print(made, () => (quiet === true ? `${made.id}\n` : importedText(made)))
    }),
})

/** Opens an archive of this machine, or standard input. @throws CommandError */
async function readArchive(
  file: string,
  { cwd, stdin }: ProcessContext,
  progress: CopyProgress,
): Promise<ReadableStream<Uint8Array>> {
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      progress.read(chunk.length)
      controller.enqueue(chunk)
    },
  })
  if (file === '-') return stdin.stream().pipeThrough(count)
  const opened = Bun.file(resolve(cwd, file))
  const stats = await opened.stat().catch((error: unknown) => {
    throw unreadable(file, error)
  })
  if (stats.isDirectory()) throw new CommandError(`${printable(file)} is a directory: name a file.`)
  progress.expect(stats.size)
  return opened.stream().pipeThrough(count)
}

function importedText({
  id,
  tier,
  status,
  files,
  bytes,
  archived,
}: ResponseOf<'control.servers.import'>): string {
  const image = archived.image === null ? '' : ` It had the image ${printable(archived.image)}.`
  return `Imported ${id} (${tier}, ${status}): ${count(files, 'file')}, ${formatBytes(bytes)}, as ${archived.id} had them on ${archived.exported_at}.${image}\n`
}

/**
 * Writes a file whole or not at all.
 *
 * @param named as the person has named it
 * @throws CommandError if there is one already, unless it may be replaced, or if it cannot be written
 */
async function writeNew(
  path: string,
  named: string,
  bytes: AsyncIterable<Uint8Array>,
  replaces: boolean,
): Promise<void> {
  const part = join(dirname(path), `${PARTIAL}${process.pid}`)
  const refuse = async (): Promise<void> => {
    const isThere = !replaces && (await lstat(path).catch(() => null)) !== null
    if (isThere) throw new CommandError(`There is a ${printable(named)} already. --force replaces it.`)
  }
  await refuse()
  try {
    {
      await using handle = await open(part, 'wx', 0o600)
      for await (const chunk of bytes) await handle.writeFile(chunk)
    }
    await refuse()
    await rename(part, path)
  } catch (error) {
    if (codeOf(error) === undefined || error instanceof CommandError) throw error
    throw new CommandError(`${printable(named)} was not written: ${(error as Error).message}.`)
  } finally {
    await rm(part, { force: true })
  }
}

/** `berth servers move` */
export const moveServer = action({
  usage: 'move [SERVER]',
  operations: ['control.servers.move'],
  description: 'move its files to this machine, a Docker engine or a cluster',
  access: 'control',
  options: { to: textOption('ENGINE', "local, docker, kubernetes, or an engine's address") },
  help: `
One of the two places is what the running berth runs servers on; the other is
opened with its options. The server stops. Its files are removed from where
they were once the copy was compared with them, by hash. Id, projects and tasks
stay.

  berth serve --compute docker     on data whose servers were of this machine
  berth servers move shop --to docker
`,
  async run({ session: { context }, options: { to }, connect, server, print }) {
    if (to === undefined) throw new UsageError('Say where to: --to local, docker, kubernetes or an address.')
    const client = await connect()
    const params = { serverId: await server() }
    const moved = await showWhile(context.stderr, `move ${params.serverId} to ${printable(to)}`, () =>
      client.call('control.servers.move', { params, body: { to } }),
    )
    const { compute } = await client.call('control.health')
    return print(moved, ({ id, from, files, bytes, removed }) =>
      [
        `Moved ${id} from ${from} to ${printable(to)}: ${count(files, 'file')}, ${formatBytes(bytes)}, compared by hash.\n`,
        removed ? '' : `Its files are still on ${from}, too: the next start removes them there.\n`,
        to === compute ? '' : `It runs again when berth is started with ${wayTo(to)}.\n`,
      ].join(''),
    )
  },
})

/** Returns the options of a berth that runs servers where `--to` names. */
const wayTo = (to: string): string =>
  to.includes('://') ? `--compute docker --engine ${printable(to)}` : `--compute ${to}`

/** `berth servers recover` */
export const recoverServer = action({
  usage: 'recover [SERVER]',
  operations: ['control.servers.recover'],
  description: 'give it new files if its node or engine is gone for good',
  access: 'control',
  options: {
    from: textOption('FILE', 'fill them from an archive of export'),
    gone: flag('say that its engine or cluster is gone for good'),
    yes: flag('do it without the question'),
  },
  help: `
Refused while the node responds or the engine has its files. What is lost is
said: all files, or what changed after the export. Nothing of the old ones is
deleted: the command prints how to remove what is left. An engine or a cluster
that cannot be reached, or is another one by now, takes --gone.

  berth servers recover shop --from shop.tar --yes
`,
  run: ({ session: { context }, options: { from, gone, yes }, connect, server, print }) =>
    untilInterrupted(async (signal) => {
      const client = await connect()
      const serverId = await server()
      const loss = `${serverId} is given ${from === undefined ? 'an empty workspace' : `the files of ${printable(from)}`} in place of its own.`
      if (yes !== true) {
        if (!isInteractive(context)) throw new CommandError(`${loss} Add --yes to do it.`)
        if (!(await askYes(`${loss} Go on?`, context))) throw new CommandError('Nothing was changed.')
      }
      const { CopyProgress } = await import('../copy/progress.ts')
      using progress = new CopyProgress(context.stderr)
      const recovered = await client.call('control.servers.recover', {
        params: { serverId },
        query: gone === true ? { gone: 'true' } : {},
        bytes: from === undefined ? undefined : await readArchive(from, context, progress),
        signal,
      })
      progress[Symbol.dispose]()
      return print(recovered, ({ id, cause, lost, files, bytes, left }) =>
        [
          `${printable(cause)}\n${printable(lost)} ${id} has ${count(files, 'file')} now, ${formatBytes(bytes)}.\n`,
          left.length === 0 ? '' : 'What is left of the old ones stays until you remove it:\n',
          ...left.map(({ remedy }) => `  ${printable(remedy)}\n`),
        ].join(''),
      )
    }),
})
