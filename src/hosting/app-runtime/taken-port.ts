import type { CommandOwner, Sandbox, ServerProcess } from '../../compute/sandbox.ts'

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
