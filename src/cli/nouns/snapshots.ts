import type { ResponseOf } from '../../route-client/client.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { shellQuote } from '../../runtime/shell-quote.ts'
import { isUndoName, NOT_SAVED } from '../../testing/names.ts'
import type { Client } from '../client.ts'
import { action, call, type Invocation, type Noun, rows } from '../command.ts'
import { askYes, isKept } from '../confirm.ts'
import { CommandError } from '../errors.ts'
import type { Named } from '../names.ts'
import { flag } from '../options.ts'
import { formatBytes, printable } from '../output.ts'
import { isInteractive } from '../process-context.ts'
import { showWhile } from '../status-line.ts'
import type { Column } from '../table.ts'

type Snapshot = ResponseOf<'control.snapshots.list'>['snapshots'][number]

const COLUMNS: readonly Column<Snapshot>[] = [
  { heading: 'NAME', cell: ({ name }) => name },
  { heading: 'CREATED', cell: ({ created_at }) => created_at },
  { heading: 'SIZE', cell: ({ bytes }) => formatBytes(bytes), right: true },
  { heading: 'VERSION', cell: ({ version }) => version, minor: 1 },
]

const NO_UNDO = flag('save no snapshot of the state before')

/** `berth snapshot` */
export const snapshotsNoun: Noun = {
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
      description: 'keep the current state, in place of an earlier snapshot of that name',
      request: ([name]) => ({ body: { name } }),
      show: ({ name, bytes }) => `Saved ${name}, ${formatBytes(bytes)}.\n`,
    }),
    call('control.snapshots.diff', {
      usage: 'diff <SNAPSHOT> [TO]',
      description: 'say what differs between a snapshot and another, or now',
      request: ([name, to]) => ({ params: { name }, query: { to } }),
      show: diffText,
    }),
    action({
      usage: 'restore <SNAPSHOT>',
      operations: ['control.snapshots.restore'],
      description: 'put a snapshot in place of the state, which is saved as before-restore first',
      access: 'control',
      options: { noUndo: NO_UNDO },
      loss: async ({ args: [name], options: { noUndo } }) =>
        `${name} takes the place of the state; what there is now is ${noUndo ? 'lost' : 'saved as a snapshot first'}.`,
      run: (invocation) => restore(invocation, invocation.args[0], invocation.options.noUndo === true),
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
  if (kinds.length + files.length === 0) return `${from} and ${to ?? 'the current state'} are the same.\n`
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
  operations: ['control.instance.reset', 'control.snapshots.list', 'control.snapshots.restore'],
  summary: 'back to just-started',
  description:
    'Puts the running instance back to just-started: servers with their files and processes, projects, tasks, keys and other accounts go, fixtures are applied again. The first API key and snapshots stay. An instance that keeps its data saves the snapshot before-reset first, the next time before-reset-2, and keeps the last five.',
  access: 'control',
  options: { noUndo: NO_UNDO, undo: flag('undo the last reset', { conflicts: 'noUndo' }) },
  loss: async ({ options: { undo, noUndo } }) =>
    undo
      ? 'The state before the last reset takes the place of the state; what there is now is saved as a snapshot first.'
      : `All servers with their files, projects, tasks, keys and other accounts of this instance are removed${noUndo ? ', without an undo' : ''}.`,
  async run(invocation) {
    const { session, options, connect, print } = invocation
    const client = await connect()
    if (options.undo) return restore(invocation, await lastUndo(client), false)
    const reset = await showWhile(session.context.stderr, 'reset the instance', () =>
      resetState(client, options.noUndo !== true),
    )
    return print(reset, (result) => resetText(result))
  },
})

/** Returns the name of the snapshot that the last reset has saved. */
async function lastUndo(client: Client): Promise<string> {
  const { snapshots: all } = await client.call('control.snapshots.list')
  const found = all.find(({ name }) => isUndoName(name) && name.startsWith('before-reset'))
  if (found !== undefined) return found.name
  throw new CommandError('No reset has saved the state before it. "berth snapshot list" shows all snapshots.')
}

/**
 * Resets an instance. One that keeps its data saves its state first, unless it is not to.
 *
 * @throws CommandError that says how to do without, if it cannot
 */
export async function resetState(
  client: Client,
  wantsUndo: boolean,
): Promise<ResponseOf<'control.instance.reset'>> {
  try {
    const undo = wantsUndo && (await isKept(client))
    return await client.call('control.instance.reset', { body: undo ? { undo } : {} })
  } catch (error) {
    throw withoutUndo(error, 'berth reset --no-undo')
  }
}

/** Says that an instance was reset, and how to undo that. */
export const resetText = ({ took_ms, undo }: ResponseOf<'control.instance.reset'>): string =>
  `Reset in ${took_ms} ms.${undoText(undo)}\n`

const undoText = (name: string | undefined): string =>
  name === undefined ? '' : ` Undo it with "berth snapshot restore ${name}".`

/** What a restore needs of its invocation. */
type RestoreInvocation = Pick<Invocation<unknown, object>, 'connect' | 'print' | 'session' | 'options'>

/**
 * Restores a snapshot. If the state cannot be saved first, asks the person whether to go on without.
 *
 * @throws CommandError that says how to do without, if nobody can be asked
 */
async function restore(invocation: RestoreInvocation, name: string, noUndo: boolean): Promise<number> {
  const { connect, print, session, options } = invocation
  const client = await connect()
  const call = (undo: boolean): Promise<ResponseOf<'control.snapshots.restore'>> =>
    showWhile(session.context.stderr, `restore ${printable(name)}`, () =>
      client.call('control.snapshots.restore', { params: { name }, body: undo ? { undo } : {} }),
    )
  const isAnswered = 'yes' in options && options.yes === true
  const restored = await call(!noUndo && (await isKept(client))).catch(async (error: unknown) => {
    const refusal = withoutUndo(error, `berth snapshot restore ${shellQuote([name])} --no-undo`)
    const canAsk = !isAnswered && refusal !== error && isInteractive(session.context)
    if (!canAsk) throw refusal
    const question = `${messageOf(error)} Restore without a way back?`
    if (!(await askYes(question, session.context))) throw new CommandError('Nothing was changed.')
    return call(false)
  })
  return print(restored, () => restoredText(restored))
}

function restoredText(result: ResponseOf<'control.snapshots.restore'>): string {
  const rules = result.outbound_rules.map(
    ({ server_id, outbound, hosts }) =>
      `  ${printable(server_id)}: ${outbound ?? 'as the instance'}${hosts === null ? '' : `, ${hosts.map(printable).join(', ') || 'no hosts'}`}\n`,
  )
  return [
    `Restored ${printable(result.restored)} in ${result.took_ms} ms.${undoText(result.undo)}\n`,
    rules.length === 0
      ? ''
      : 'It brought what these servers may reach ("berth servers network" changes it):\n',
    ...rules,
  ].join('')
}

/** Returns the error with the command that saves nothing, if the state could not be saved first; any other unchanged. */
function withoutUndo(error: unknown, command: string): unknown {
  if (!(error instanceof CommandError) || !error.message.startsWith(NOT_SAVED)) return error
  return new CommandError(`${error.message} "${command}" goes on without.`, error.exitCode)
}
