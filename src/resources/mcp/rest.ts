import { fieldsOf } from '../../runtime/is-object.ts'
import type { Cut, ListCut } from './cut.ts'

/** A call that reads what a result leaves out. */
interface RestCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** A result that was cut. */
interface CutResult {
  readonly args: Readonly<Record<string, unknown>>
  /** The whole result. */
  readonly body: Readonly<Record<string, unknown>>
  readonly cuts: readonly Cut[]
}

/** Bytes and lines that a command for the rest shows at a time. */
const SHOWN_BYTES = 16_000
const SHOWN_LINES = 400

/** Lists that are read on from the last shown item, and so are cut at their end. */
const READ_ON: ReadonlySet<string> = new Set(['executions.output', 'tasks.events'])

/** Returns where the lists of an operation's result are cut. */
export const listCutOf = (operationId: string): ListCut => (READ_ON.has(operationId) ? 'end' : 'middle')

/** Tools that read one item of a list, and the arguments that name it besides those of the list. */
const READS_ONE: Readonly<Record<string, readonly [tool: string, argument: string]>> = {
  servers: ['servers_get', 'serverId'],
  projects: ['projects_get', 'projectId'],
  tasks: ['tasks_get', 'taskId'],
  builds: ['builds_get', 'buildId'],
  executions: ['executions_get', 'executionId'],
  terminals: ['terminals_get', 'terminalId'],
}

/** By operation id. */
const REST: Readonly<Record<string, (result: CutResult) => RestCall | null>> = {
  'exec.run': ({ args, body, cuts }) =>
    typeof body.executionId === 'string'
      ? {
          tool: 'executions_output',
          arguments: { serverId: args.serverId, executionId: body.executionId, ...behindHead(body, cuts) },
        }
      : null,
  'executions.output': ({ args, body, cuts }) =>
    readOn(args, lastShown(body, cuts, 'output').id, 'executions_output'),
  'tasks.events': ({ args, body, cuts }) => readOn(args, lastShown(body, cuts, 'events').seq, 'tasks_events'),
  'builds.logs': (result) => laterLines(result, 'builds_logs'),
  'projects.logs': (result) => laterLines(result, 'projects_logs'),
  'deployments.logs': (result) => laterLines(result, 'deployments_logs'),
  'files.read': ({ args, body, cuts }) => {
    const cut = cuts[0]
    if (cut === undefined) return null
    const { serverId } = args
    if (typeof body.content !== 'string') {
      const lines = `${cut.head + 1},${Math.min(cut.head + SHOWN_LINES, cut.total)}p`
      const command = `find . -type f -not -path '*/.git/*' -not -path '*/node_modules/*' | sort | sed -n '${lines}'`
      return { tool: 'exec_run', arguments: { serverId, command } }
    }
    if (body.encoding === 'base64') return null
    const from = Buffer.byteLength(body.content.slice(0, cut.head)) + 1
    const path = `'${String(args.path)
      .replace(/^\/workspace\//, '')
      .replaceAll("'", "'\\''")}'`
    return {
      tool: 'exec_run',
      arguments: { serverId, command: `tail -c +${from} ${path} | head -c ${SHOWN_BYTES}` },
    }
  },
  'terminals.screen': ({ args }) => ({ tool: 'terminals_screen', arguments: { ...args, lines: 50 } }),
}

/** Returns a cut result with the fields that say so: where its reader goes on, and that a command printed more. */
export function toReadOn(
  operationId: string,
  value: CutResult['body'],
  cuts: readonly Cut[],
): CutResult['body'] {
  if (operationId === 'exec.run' && cuts.length > 0) return { ...value, truncated: true }
  if (operationId !== 'executions.output' || !cuts.some(({ field }) => field === 'output')) return value
  const { id } = lastShown(value, cuts, 'output')
  return id === undefined ? value : { ...value, next: id }
}

/** Returns the call that reads what was cut of a result; null if there is none. */
export function restOf(operationId: string, result: CutResult): RestCall | null {
  const rest = REST[operationId]?.(result)
  if (rest !== undefined) return rest
  const list = result.cuts.find(({ unit }) => unit === 'items')
  const [tool, argument] = (list && READS_ONE[list.field]) ?? []
  if (list === undefined || tool === undefined || argument === undefined) return null
  const first = fieldsOf((result.body[list.field] as unknown[])[list.head])
  const { serverId = first.serverId } = result.args
  const ofServer = argument !== 'serverId' && argument !== 'projectId'
  return { tool, arguments: { ...(ofServer ? { serverId } : {}), [argument]: first.id } }
}

/** Returns the arguments that go on where the heads of the streams end, if the heads are exact. */
function behindHead(body: CutResult['body'], cuts: readonly Cut[]): { after?: string } {
  const ends = (['stdout', 'stderr'] as const).map((stream) => {
    const { [stream]: text, [`${stream}Base64`]: exact } = body
    const cut = cuts.find(({ field }) => field === stream)
    if (typeof text !== 'string' || exact !== undefined || text.includes('\ufffd')) return null
    // Text in which berth itself has left something out is exact before that only.
    if (cut === undefined && body.truncated === true && text !== '') return null
    return Buffer.byteLength(cut === undefined ? text : text.slice(0, cut.head))
  })
  return ends.every((end) => typeof end === 'number') ? { after: ends.join('-') } : {}
}

function lastShown(body: CutResult['body'], cuts: readonly Cut[], field: string): Record<string, unknown> {
  const head = cuts.find((cut) => cut.field === field)?.head ?? 0
  return fieldsOf((body[field] as unknown[] | undefined)?.[head - 1])
}

const readOn = (args: CutResult['args'], after: unknown, tool: string): RestCall | null =>
  after === undefined ? null : { tool, arguments: { ...args, after } }

/** Returns the call that reads a log from the first line that was left out. */
function laterLines({ args, body, cuts }: CutResult, tool: string): RestCall | null {
  const { at } = lastShown(body, cuts, 'logs')
  if (at === undefined) return null
  const { tail: _, follow: __, ...rest } = args
  return { tool, arguments: { ...rest, since: at } }
}
