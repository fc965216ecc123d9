import { type Workspace, WorkspaceError } from '../../compute/workspace.ts'

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
