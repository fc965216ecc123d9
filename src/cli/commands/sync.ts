import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import type { Client } from '../client.ts'
import { action, jsonLines } from '../command.ts'
import { parsePlace, pathIn } from '../copy/place.ts'
import type { SyncOutcome } from '../directory/sync.ts'
import { untilInterrupted } from '../interrupt.ts'
import { flag } from '../options.ts'
import { count, printable, printResult, timeOfDay } from '../output.ts'

/** `berth sync` */
export const sync = action({
  usage: 'sync [DIR] [TARGET]',
  operations: ['files.manifest'],
  shownUsage: '[options] [DIR] [TARGET]',
  summary: 'send what differs of a directory to a server',
  description: 'Sends the files of a directory that differ by content from those of a server.',
  access: 'api',
  json: jsonLines('sending'),
  arguments: {
    DIR: { description: 'the directory (default: the working directory)' },
    TARGET: { description: 'where its content goes, as SERVER:PATH (default: the workspace)' },
  },
  options: {
    watch: flag('again after each change, until Ctrl-C', { short: 'w' }),
    delete: flag('remove files of the server that are not here'),
  },
  help: `
  berth sync . shop:app                what is in the working directory
  berth sync --watch                   to the workspace of the only server
  berth sync dist :www --delete        www has nothing else then

It leaves out what "berth deploy DIR" does: what git ignores and does not track, what .berthignore files
exclude, .git, node_modules and .env files that git does not track. --delete leaves such files of the
server alone.
`,
  async run({ session: { context }, args: [dir = '.', target = ':'], options, connect, reconnect, place }) {
    const wanted = parsePlace(target)
    if (wanted.kind !== 'server')
      throw new UsageError(
        `Expected SERVER:PATH as the target, got ${JSON.stringify(target)}.${/^[\w-]+$/.test(target) ? ` Did you mean ${target}: for the server, or :${target} for that path of the one that is chosen?` : ''}`,
      )
    const client = await connect()
    const found = await place(wanted.server === '' ? undefined : wanted.server)
    const { serverId } = found
    const [
      { RemoteShell },
      { Synchronizer },
      { CopyProgress },
      { notesOn, sentText },
      { OutgoingDirectory },
    ] = await Promise.all([
      import('../copy/remote.ts'),
      import('../directory/sync.ts'),
      import('../copy/progress.ts'),
      import('../directory/report.ts'),
      import('../directory/outgoing.ts'),
    ])
    const { stdout, stderr } = context
    const directory = new OutgoingDirectory(resolve(context.cwd, dir))
    const synchronizer = new Synchronizer(
      directory,
      pathIn(found.directory, wanted.path),
      options.delete ?? false,
    )
    const once = async (client: Client, signal: AbortSignal): Promise<SyncOutcome & { volume: string }> => {
      using progress = new CopyProgress(stderr)
      const outcome = await synchronizer.run(new RemoteShell(client, serverId, signal), progress)
      return { ...outcome, volume: progress.volume() }
    }
    const report = async ({ sent, removed, volume }: SyncOutcome & { volume: string }): Promise<void> => {
      const name = `${wanted.server || serverId}:${wanted.path}`
      const time = options.watch ? `${timeOfDay()}  ` : ''
      await printResult(stdout, options.json, { sent, removed }, () => {
        if (sent.length + removed.length === 0) return `${time}Nothing differs from ${printable(name)}.\n`
        const done = [
          sent.length === 0 ? '' : options.watch ? sentText(sent) : `${count(sent.length, 'file')} sent`,
          removed.length === 0 ? '' : `${removed.length} removed`,
        ].filter(Boolean)
        return `${time}${done.join(', ')}: ${printable(name)}${sent.length > 0 ? ` (${volume})` : ''}\n`
      })
    }
    const first = async (client: Client, signal: AbortSignal): Promise<void> => {
      await report(await once(client, signal))
      const { survey } = directory
      if (survey !== null && !options.json) await stderr.write(notesOn(survey, 'berth secrets import'))
    }
    if (!options.watch)
      return untilInterrupted(async (signal) => {
        await first(client, signal)
        return 0
      })
    const { sendOnChange } = await import('../directory/watch.ts')
    return sendOnChange({
      directory: directory.path,
      isLeftOut: directory.isLeftOut,
      target: { type: 'server', id: serverId },
      stderr,
      client,
      reconnect,
      mustBegin: true,
      async send(now, signal, isFirst) {
        if (isFirst) return first(now, signal)
        const outcome = await once(now, signal)
        if (outcome.sent.length + outcome.removed.length > 0) await report(outcome)
      },
    })
  },
})
