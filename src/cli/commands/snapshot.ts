import type { Command } from 'commander'
import type { Replaced } from '../../testing/api/states.ts'
import type { Snapshot } from '../../testing/snapshots/snapshots.ts'
import { formatBytes } from '../format.ts'
import type { ConnectionOptions } from '../instance.ts'
import { type Column, table } from '../output.ts'
import { path } from '../path.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
}

const COLUMNS: Column<Snapshot>[] = [
  { heading: 'NAME', cell: ({ name }) => name },
  { heading: 'CREATED', cell: ({ created_at }) => created_at },
  { heading: 'SIZE', cell: ({ bytes }) => formatBytes(bytes), right: true },
  { heading: 'VERSION', cell: ({ version }) => version },
]

/** Adds `reset`. */
export function registerReset(program: Command, session: Session): void {
  const reset = program
    .command('reset')
    .summary('back to just-started')
    .description(
      'Puts the running instance back to just-started: servers with their files and processes, projects, tasks, keys and other accounts go, fixtures are applied again. The first API key and snapshots stay.',
    )
  withControl(withJson(reset)).action(async (options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<Replaced>('POST', '/_berth/reset')
    if (options.json) return printJson(session, answer)
    await session.terminal.stdout.write(`Reset in ${answer.took_ms} ms.\n`)
  })
}

/** Adds `snapshot` and what can be done with them. */
export function registerSnapshot(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const snapshot = program
    .command('snapshot')
    .helpCommand(false)
    .summary('keep the whole state and go back to it')
    .description(
      'Keeps the whole state of the running instance, files included, under a name, and goes back to it. Plain "berth snapshot" lists the snapshots.',
    )
  const add = (usage: string, description: string) =>
    withControl(withJson(snapshot.command(usage).description(description)))

  add('list', 'list all snapshots, newest first').action(async (options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<{ snapshots: Snapshot[] }>('GET', '/_berth/snapshots')
    if (options.json) return printJson(session, answer)
    if (answer.snapshots.length === 0)
      return stdout.write('No snapshots yet. Make one with "berth snapshot save NAME".\n')
    await stdout.write(table(stdout, COLUMNS, answer.snapshots))
  })

  add('save <NAME>', 'keep the state as it is now, in place of an earlier snapshot of that name').action(
    async (name: string, options: Options) => {
      const client = await connectControl(session, options)
      const made = await client.request<Snapshot>('POST', '/_berth/snapshots', { body: { name } })
      if (options.json) return printJson(session, made)
      await stdout.write(`Saved ${made.name}, ${formatBytes(made.bytes)}.\n`)
    },
  )

  add('restore <SNAPSHOT>', 'put a snapshot in place of the state; what there is now is lost').action(
    async (name: string, options: Options) => {
      const client = await connectControl(session, options)
      const answer = await client.request<Replaced>('POST', path`/_berth/snapshots/${name}/restore`)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Restored ${name} in ${answer.took_ms} ms.\n`)
    },
  )

  add('rm <SNAPSHOT>', 'remove a snapshot')
    .alias('delete')
    .action(async (name: string, options: Options) => {
      const client = await connectControl(session, options)
      const answer = await client.request<{ name: string }>('DELETE', path`/_berth/snapshots/${name}`)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Removed ${answer.name}.\n`)
    })
}
