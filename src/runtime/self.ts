import { dirname, join } from 'node:path'

/** The command by which berth starts itself again, such as sandboxd inside a sandbox. */
export interface SelfCommand {
  /** Program and first arguments; a hidden command's name follows. */
  readonly argv: readonly [program: string, ...rest: string[]]
  /** Whether the program is one compiled file, rather than Bun with source files. */
  readonly compiled: boolean
}

/**
 * Returns how berth is started again. From source it is always `src/main.ts`: any other file that loads this one, such as a
 * script, would start itself, and that one itself.
 */
export function selfCommand(): SelfCommand {
  const compiled = import.meta.dir.startsWith('/$bunfs/')
  const { execPath } = process
  return { argv: compiled ? [execPath] : [execPath, join(import.meta.dir, '../main.ts')], compiled }
}

/**
 * Returns the program's file, and the directory of its source files; null for a compiled executable, which contains
 * them.
 */
export function selfFiles({ argv, compiled }: SelfCommand): { program: string; sources: string | null } {
  const [program, main] = argv
  return { program, sources: compiled || main === undefined ? null : dirname(main) }
}

/** Returns the path of the file that says the version of the source files in a directory, which they import. */
export const versionFileOf = (sources: string): string => join(dirname(sources), 'package.json')
