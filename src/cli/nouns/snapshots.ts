import type { ResponseOf } from '../../client/client.ts'
import type { Client } from '../client.ts'
import type { Named } from '../names.ts'
import { formatBytes } from '../output.ts'
import { call, type Noun, rows } from '../runner.ts'
import type { Column } from '../table.ts'

type Snapshot = ResponseOf<'control.snapshots.list'>['snapshots'][number]

const COLUMNS: readonly Column<Snapshot>[] = [
  { heading: 'NAME', cell: ({ name }) => name },
  { heading: 'CREATED', cell: ({ created_at }) => created_at },
  { heading: 'SIZE', cell: ({ bytes }) => formatBytes(bytes), right: true },
  { heading: 'VERSION', cell: ({ version }) => version, minor: 1 },
]

/** `berth snapshot` */
export const snapshots: Noun = {
  name: 'snapshot',
  aliases: ['snapshots'],
  summary: 'keep the whole state and go back to it',
  description:
    'Keeps the whole state of the running instance, files included, under a name, and goes back to it. Plain "berth snapshot" lists the snapshots.',
  names: [{ placeholder: 'SNAPSHOT', words: null, list: listNamed }],
  commands: [
    call('control.snapshots.list', {
      usage: 'list',
      description: 'list all snapshots, newest first',
      show: rows('snapshots', COLUMNS, 'No snapshots yet. Make one with "berth snapshot save NAME".\n'),
    }),
    call('control.snapshots.create', {
      usage: 'save <NAME>',
      aliases: ['create'],
      description: 'keep the state as it is now, in place of an earlier snapshot of that name',
      request: ([name]) => ({ body: { name } }),
      show: ({ name, bytes }) => `Saved ${name}, ${formatBytes(bytes)}.\n`,
    }),
    call('control.snapshots.restore', {
      usage: 'restore <SNAPSHOT>',
      description: 'put a snapshot in place of the state; what there is now is lost',
      request: ([name]) => ({ params: { name } }),
      show: ({ took_ms }, { args: [name] }) => `Restored ${name} in ${took_ms} ms.\n`,
    }),
    call('control.snapshots.delete', {
      usage: 'delete <SNAPSHOT>',
      description: 'remove a snapshot',
      request: ([name]) => ({ params: { name } }),
      show: ({ name }) => `Removed ${name}.\n`,
    }),
  ],
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { snapshots: all } = await client.call('control.snapshots.list', { signal })
  return all.map(({ name, created_at }) => ({ id: name, description: created_at }))
}

/** `berth reset` */
export const reset = call('control.reset', {
  usage: 'reset',
  summary: 'back to just-started',
  description:
    'Puts the running instance back to just-started: servers with their files and processes, projects, tasks, keys and other accounts go, fixtures are applied again. The first API key and snapshots stay.',
  show: ({ took_ms }) => `Reset in ${took_ms} ms.\n`,
})
