import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { action } from '../command.ts'
import { type CopyPlace, parsePlace, pathIn } from '../copy/place.ts'
import type { CopyProgress } from '../copy/progress.ts'
import type { RemoteShell } from '../copy/remote.ts'
import { untilInterrupted } from '../interrupt.ts'
import { printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'

type ServerPlace = Extract<CopyPlace, { kind: 'server' }>
type LocalPlace = Exclude<CopyPlace, { kind: 'server' }>

/** The two ends of a copy, one of them on a server. */
type Direction =
  | { readonly kind: 'up'; readonly remote: ServerPlace; readonly here: LocalPlace }
  | { readonly kind: 'down'; readonly remote: ServerPlace; readonly here: LocalPlace }

/** `berth cp` */
export const cp = action({
  usage: 'cp <SOURCE> <TARGET>',
  shownUsage: '[options] LOCAL SERVER:PATH | SERVER:PATH LOCAL',
  summary: 'copy files and directories to a server, and back',
  description: 'Copies a file or a directory to a server, or from one. - is standard input or output.',
  access: 'api',
  arguments: {
    SOURCE: { description: 'what to copy' },
    TARGET: { description: 'where to, a new name or a directory' },
  },
  help: `
  berth cp notes.txt shop:             into the workspace
  berth cp dist shop:www               www is new: it gets what is in dist
                                       www is there: www/dist
  berth cp dist/. shop:www             what is in dist, in either case
  berth cp shop:logs/app.log .         and back
  berth cp :data.db backup.db          of the only server, or of berth use
  berth cp config.json app:            into the directory of the project app
  pg_dump shop | berth cp - shop:dump.sql

A path on a server is relative to its workspace, or absolute. A slash at the
end of TARGET names a directory. Permission bits, times and links are kept.
Files are replaced, others stay. A local file with a colon is ./a:b.
`,
  async run({ session: { context }, args: [source, target], connect, place, print }) {
    const direction = directionOf(parsePlace(source), parsePlace(target))
    const { kind, remote, here } = direction
    const client = await connect()
    const { serverId, directory } = await place(remote.server === '' ? undefined : remote.server)
    const inDirectory = { ...direction, remote: { ...remote, path: pathIn(directory, remote.path) } }
    return untilInterrupted(async (signal) => {
      const [{ RemoteShell }, { CopyProgress }] = await Promise.all([
        import('../copy/remote.ts'),
        import('../copy/progress.ts'),
      ])
      using progress = new CopyProgress(context.stderr)
      const shell = new RemoteShell(client, serverId, signal)
      const path = await copy(inDirectory, { shell, progress, context, target })
      progress[Symbol.dispose]()
      // Standard output has the file then.
      if (kind === 'down' && here.kind === 'stream') return 0
      const written = kind === 'up' ? `${remote.server}:${path}` : path
      return print({ path }, () => `Copied to ${printable(written)}: ${progress.summary()}.\n`)
    })
  },
})

function directionOf(from: CopyPlace, to: CopyPlace): Direction {
  if (from.kind === 'server' && to.kind === 'server')
    throw new UsageError('Both are on a server. Copy to this machine first, then to the other server.')
  if (from.kind === 'server' && to.kind !== 'server') return { kind: 'down', remote: from, here: to }
  if (to.kind === 'server' && from.kind !== 'server') return { kind: 'up', remote: to, here: from }
  // A word without a slash may be a server whose colon is missing.
  const isServer = to.kind === 'local' && /^[\w-]+$/.test(to.path)
  throw new UsageError(
    isServer
      ? `Name a server on one side, with a colon. Did you mean ${to.path}: for the server, or :${to.path} for that path of the one that is chosen?`
      : 'Name a server on one side, as in "berth cp notes.txt SERVER:notes.txt".',
  )
}

/** What a copy works with. */
interface CopyTools {
  readonly shell: RemoteShell
  readonly progress: CopyProgress
  readonly context: ProcessContext
  /** The target as the person has named it. */
  readonly target: string
}

/** Copies, and returns the path that was written; an empty text for standard output. */
async function copy(
  { kind, remote, here }: Direction,
  { shell, progress, context, target }: CopyTools,
): Promise<string> {
  if (kind === 'up') {
    const { copyToServer, streamToServer } = await import('../copy/upload.ts')
    if (here.kind === 'stream') return streamToServer(shell, context.stdin.stream(), remote.path, progress)
    const source = resolve(context.cwd, here.path)
    return copyToServer(shell, { source, named: here.path, target: remote.path }, progress)
  }
  const { copyFromServer, streamFromServer } = await import('../copy/download.ts')
  if (here.kind === 'stream') {
    await streamFromServer(shell, remote.path, context.stdout, progress)
    return ''
  }
  const local = resolve(context.cwd, here.path)
  const ends = { source: remote.path, target: local, endsWithSlash: target.endsWith('/') }
  return copyFromServer(shell, ends, progress)
}
