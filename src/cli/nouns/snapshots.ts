import type { ResponseOf } from '../../client/client.ts'
import { KEPT_UNDOS, nextUndo } from '../../client/undo.ts'
import type { Client } from '../client.ts'
import { action, call, type Noun, rows } from '../command.ts'
import { isKept } from '../confirm.ts'
import { CommandError } from '../errors.ts'
import type { Named } from '../names.ts'
import { flag } from '../options.ts'
import { formatBytes, printable } from '../output.ts'
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
    call('control.snapshots.diff', {
      usage: 'diff <SNAPSHOT> [TO]',
      description: 'say what differs between a snapshot and another, or now',
      request: ([name, to]) => ({ params: { name }, query: { to } }),
      show: diffText,
    }),
    call('control.snapshots.restore', {
      usage: 'restore <SNAPSHOT>',
      description: 'put a snapshot in place of the state; what there is now is lost',
      request: ([name]) => ({ params: { name } }),
      show: ({ took_ms }, { args: [name] }) => `Restored ${name} in ${took_ms} ms.\n`,
      loss: async ({ args: [name] }) => `${name} takes the place of the state; what there is now is lost.`,
    }),
    call('control.snapshots.delete', {
      usage: 'delete <SNAPSHOT>',
      description: 'remove a snapshot',
      request: ([name]) => ({ params: { name } }),
      show: ({ name }) => `Removed ${name}.\n`,
      loss: async ({ args: [name] }) => `The snapshot ${name} is removed.`,
    }),
  ],
}

const SIGNS = { added: '+', removed: '-', changed: '~' } as const

/** Returns what differs as lines below their kind or their server. */
function diffText({ from, to, kinds, files }: ResponseOf<'control.snapshots.diff'>): string {
  if (kinds.length + files.length === 0) return `${from} and ${to ?? 'the state of now'} are the same.\n`
  const counts = ({ added, removed, changed }: { added: number; removed: number; changed: number }): string =>
    [added && `${added} added`, removed && `${removed} removed`, changed && `${changed} changed`]
      .filter(Boolean)
      .join(', ')
  const things = kinds.map((kind) => {
    const lines = kind.items.map(
      ({ change, id, name, fields }) =>
        // A variable's id, that of its owner and its name, says the name already.
        `  ${SIGNS[change]} ${printable(id)}${name === null || id.endsWith(` ${name}`) ? '' : ` ${printable(name)}`}${fields.length === 0 ? '' : ` (${fields.join(', ')})`}\n`,
    )
    return [`${kind.kind}: ${counts(kind)}\n`, ...lines, leftText(kind, kind.items.length)].join('')
  })
  const trees = files.map((server) => {
    const lines = server.files.map(({ change, path }) => `  ${SIGNS[change]} ${printable(path)}\n`)
    return [
      `files of ${server.server_id}: ${counts(server) || 'no difference found'}\n`,
      ...lines,
      leftText(server, server.files.length),
      server.is_complete
        ? ''
        : '  Not all files were looked at: there are too many, or berth may not read some directories.\n',
    ].join('')
  })
  return [...things, ...trees].join('')
}

const leftText = (
  { added, removed, changed }: { added: number; removed: number; changed: number },
  shown: number,
): string => (added + removed + changed > shown ? `  and ${added + removed + changed - shown} more\n` : '')

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { snapshots: all } = await client.call('control.snapshots.list', { signal })
  return all.map(({ name, created_at }) => ({ id: name, description: created_at }))
}

/** `berth reset` */
export const reset = action({
  usage: 'reset',
  operations: ['control.reset'],
  summary: 'back to just-started',
  description:
    'Puts the running instance back to just-started: servers with their files and processes, projects, tasks, keys and other accounts go, fixtures are applied again. The first API key and snapshots stay. An instance that keeps its data saves the snapshot before-reset first, the next time before-reset-2, and keeps the last five.',
  access: 'control',
  options: { noUndo: flag('save no snapshot of the state before') },
  loss: async ({ options: { noUndo } }) =>
    `All servers with their files, projects, tasks, keys and other accounts of this instance are removed${noUndo ? ', without an undo' : ''}.`,
  async run({ options: { noUndo }, connect, print }) {
    const client = await connect()
    const saved = !noUndo && (await isKept(client)) ? await saveUndo(client) : null
    return print(await client.call('control.reset'), ({ took_ms }) => {
      return `Reset in ${took_ms} ms.${saved ?? ''}\n`
    })
  },
})

/**
 * Saves the state before a reset under a name of its own, and removes the oldest of what earlier resets have saved.
 *
 * @returns how to undo the reset, as sentences after a space
 * @throws CommandError that says how to do without
 */
export async function saveUndo(client: Client): Promise<string> {
  try {
    const { snapshots: all } = await client.call('control.snapshots.list')
    const { name, surplus } = nextUndo(
      'before-reset',
      all.map((one) => one.name),
    )
    await client.call('control.snapshots.create', { body: { name } })
    for (const old of surplus) await client.call('control.snapshots.delete', { params: { name: old } })
    const removed =
      surplus.length === 0 ? '' : ` Removed ${surplus.join(', ')}: the last ${KEPT_UNDOS} are kept.`
    return ` Undo it with "berth snapshot restore ${name}".${removed}`
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    throw new CommandError(
      `The state cannot be saved before the reset: ${error.message} "berth reset --no-undo" resets without that.`,
      error.exitCode,
    )
  }
}
