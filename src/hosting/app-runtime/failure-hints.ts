import {
  type CommandOwner,
  describeRefusal,
  RefusalCollector,
  type Sandbox,
  type ServerProcess,
} from '../../compute/sandbox.ts'
import { type Workspace, WorkspaceError } from '../../compute/workspace.ts'
import type { AppLog } from './log/log.ts'

/** Most words that are tried as names of files, and most bytes of a file that are looked at. @bound program */
const MAX_WORDS = 500
const MAX_BYTES = 64 * 1024

/** Matches words that can be paths. */
const WORD = /[\w@+.][\w@+./-]*/g

/** A command that failed. */
interface FailedCommand {
  readonly command: string
  readonly exitCode: number | null
  /** Its last lines of output. */
  readonly lines: readonly string[]
  /** Its directory, relative to the workspace. */
  readonly cwd: string
  readonly workspace: Workspace
}

/**
 * Returns a sentence, with the remedy, that a command failed because of a script with Windows line endings; null if it
 * has called none. The script may be the command, or be called by one that is, or by a script of package.json.
 */
export async function describeWindowsScript(failed: FailedCommand): Promise<string | null> {
  const { command, exitCode, lines, cwd, workspace } = failed
  if (exitCode === 0 || exitCode === null) return null
  const tried = new Set<string>()
  const texts = [command, lines.join('\n'), 'package.json']
  for (let text = texts.shift(); text !== undefined; text = texts.shift()) {
    for (const [word] of text.matchAll(WORD)) {
      const path = word.replace(/^\.\//, '')
      if (tried.has(path) || tried.size >= MAX_WORDS) continue
      tried.add(path)
      const script = await readScript(workspace, cwd === '' ? path : `${cwd}/${path}`)
      if (script === null) continue
      const first = script.slice(0, script.indexOf('\n') + 1)
      if (first.endsWith('\r\n') && breaks(first, path, exitCode))
        return sentenceOf(path, first.trimEnd(), exitCode)
      texts.push(script)
    }
  }
  return null
}

/**
 * Reports whether the first line of a script explains the end of a command. The kernel takes the end of its line for part
 * of the interpreter's name; shells take those of the other lines for part of their commands.
 */
const breaks = (first: string, path: string, exitCode: number): boolean =>
  exitCode === 126 || exitCode === 127
    ? first.startsWith('#!') || path.endsWith('.sh')
    : /^#!.*\b(?:ba|da|k|z)?sh\b/.test(first) || path.endsWith('.sh')

const sentenceOf = (path: string, first: string, exitCode: number): string => {
  const interpreter = /^#!\s*(?:\S*\/env(?:\s+-\S+)*\s+)?(\S+)/.exec(first)?.[1]
  const effect =
    interpreter === undefined || exitCode < 126
      ? 'which shells take for parts of commands'
      : `so that its interpreter would be "${interpreter}\\r", which does not exist`
  return `${path} has Windows line endings (CRLF), ${effect}. Remove them with: sed -i 's/\\r$//' ${path}`
}

async function readScript(workspace: Workspace, path: string): Promise<string | null> {
  try {
    return Buffer.from(await workspace.read(path, MAX_BYTES)).toString('latin1')
  } catch (error) {
    // No file, a link that leads out, or one too large for a script.
    if (error instanceof WorkspaceError) return null
    throw error
  }
}

/** Notes in an app's log what its server is refused until the result ends, with what would allow it. */
export const noteRefusals = ({ outboundControl }: Sandbox, log: AppLog): RefusalCollector =>
  new RefusalCollector(outboundControl, (refused) => log.append('berth', describeRefusal(refused)))

/** Matches what programs say whose Unix socket is refused: the error's name and its text (errno(3)). */
const REFUSED = /\bEAFNOSUPPORT\b|\bAddress family not supported\b/i

const HINT =
  'The isolation landlock refuses Unix sockets, which this program seems to need. Start berth with --allow-unix-sockets, or with the isolation bubblewrap; "berth help isolation" says what else helps.'

/**
 * Returns a function that takes the lines of a program, and passes the remedy on once, at the first that says that a Unix socket was
 * refused; undefined if the server does not refuse them.
 */
export function socketHint(
  { refusesUnixSockets }: Pick<Sandbox, 'refusesUnixSockets'>,
  pass: (hint: string) => void,
): ((line: string) => void) | undefined {
  if (refusesUnixSockets !== true) return undefined
  let isTold = false
  return (line) => {
    if (isTold || !REFUSED.test(line)) return
    isTold = true
    pass(HINT)
  }
}

/** Matches what programs print whose port is taken. */
export const PORT_TAKEN =
  /EADDRINUSE|\bAddrInUse\b|\b(?:address|port|connection) (?:\d+ )?(?:(?:is|was) )?(?:already )?in use\b|already running on port \d/i

/** Lines below such a one that may have the number of the port, as Node.js prints its errors. */
const LINES_BELOW = 10

/** Characters of a command line that are shown. @bound reader */
const MAX_COMMAND = 80

/** The options of `describeTakenPort`. */
interface TakenPortOptions {
  sandbox: Sandbox
  /** What the program belongs to whose port is taken. */
  owner: CommandOwner
  /** Its last lines of output. */
  lines: readonly string[]
  /** Returns the slug of the project of this id; null if there is none. */
  slugOf(id: string): string | null
}

/**
 * Returns who has the port that a program wants, for a person, as sentences with the remedy; null if its output does not
 * say that a port is taken.
 */
export async function describeTakenPort(options: TakenPortOptions): Promise<string | null> {
  const { sandbox, owner, lines, slugOf } = options
  const first = lines.findIndex((line) => PORT_TAKEN.test(line))
  if (first === -1) return null
  const text = lines.slice(first, first + 1 + LINES_BELOW).join('\n')
  const named = new Set([...text.matchAll(/(?<![\d.])\d{1,5}(?!\.?\d)/g)].map(([digits]) => Number(digits)))
  const processes = await sandbox.processes().catch((): ServerProcess[] => [])
  const isOwn = (one: ServerProcess): boolean => one.owner?.kind === owner.kind && one.owner.id === owner.id
  const holders = processes
    .filter((one) => !isOwn(one))
    .flatMap((one) => one.ports.map((port) => ({ port, by: describeHolder(one, slugOf) })))
  const certain = holders.find(({ port }) => named.has(port))
  if (certain !== undefined) return `It wants port ${certain.port}, which is held by ${certain.by}. ${REMEDY}`
  const own = processes.filter(isOwn).flatMap(({ ports }) => ports)
  const port = own.find((one) => named.has(one))
  if (port !== undefined) return `It wants port ${port}, which another process of the app itself has.`
  if (holders.length > 0 && named.size === 0) {
    const list = [...new Set(holders.map((one) => `${one.port} by ${one.by}`))].join(', ')
    return `It wants a port that is taken. Of its server are taken: ${list}. ${REMEDY}`
  }
  return sandbox.network === 'shared'
    ? `It wants a port that another program of this machine has. ${REMEDY}`
    : `It wants a port that is taken. ${REMEDY}`
}

const REMEDY = 'Let it listen on the port in the variable PORT, which is free.'

function describeHolder({ pid, command, owner }: ServerProcess, slugOf: TakenPortOptions['slugOf']): string {
  if (owner?.kind === 'project' && owner.id !== null)
    return `the app of the project ${slugOf(owner.id) ?? owner.id}`
  if (owner?.kind === 'deployment') return 'the app that its server publishes'
  return `process ${pid} of its server (${command.slice(0, MAX_COMMAND)})`
}
