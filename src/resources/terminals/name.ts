import { badRequest } from '../../errors.ts'
import type { TerminalCreate } from './model.ts'

/**
 * Returns the name of a new terminal: the one that is asked for, or that of its program, with a number if need be.
 *
 * @param taken the names of the server's other terminals
 * @throws BerthError 400 if another has it
 */
export function nameFor({ name, command }: TerminalCreate, taken: ReadonlySet<string>): string {
  if (name !== undefined) {
    if (!taken.has(name)) return name
    throw badRequest(`"name" in the body: the server has a terminal "${name}" already; choose another name.`)
  }
  const program = command === undefined ? 'shell' : programOf(command)
  for (let number = 1; ; number += 1) {
    const free = number === 1 ? program : `${program}-${number}`
    if (!taken.has(free)) return free
  }
}

/** Returns the name of a command's program, as a terminal's name may be: `FOO=1 exec /bin/top -d 1` → `top`. */
function programOf(command: string): string {
  const words = command.trim().split(/\s+/)
  const program = words.find((word) => word !== 'exec' && !/^[A-Za-z_]\w*=/.test(word)) ?? ''
  const [name] = /[A-Za-z0-9][A-Za-z0-9._-]{0,40}/.exec(program.split('/').at(-1) ?? '') ?? []
  return name ?? 'command'
}
