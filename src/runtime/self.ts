import { dirname } from 'node:path'

/** The command by which berth starts itself again, such as sandboxd inside a sandbox. */
export interface SelfCommand {
  /** Program and first arguments; a hidden command's name follows. */
  readonly argv: readonly [program: string, ...rest: string[]]
  /** Whether the program is one compiled file, rather than Bun with source files. */
  readonly compiled: boolean
}

/**
 * Determines how this process was started.
 *
 * @param execPath `process.execPath`
 * @param mainPath `Bun.main`, which is in Bun's virtual file system for a compiled executable
 */
export function selfCommand(execPath: string, mainPath: string): SelfCommand {
  const compiled = mainPath.startsWith('/$bunfs/')
  return { argv: compiled ? [execPath] : [execPath, mainPath], compiled }
}

/**
 * Returns the program's file, and the directory of its source files; null for a compiled executable, which contains
 * them.
 */
export function selfFiles({ argv, compiled }: SelfCommand): { program: string; sources: string | null } {
  const [program, main] = argv
  return { program, sources: compiled || main === undefined ? null : dirname(main) }
}
