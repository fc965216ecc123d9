import { type Toolchain, versionIn } from '../../compute/tools.ts'

/** The programs that an app's commands can call. */
export interface Machine {
  /** Reports whether a program of this name is on the PATH. */
  has(name: string): Promise<boolean>
  /** Returns the installed versions of a tool, the one on PATH first; none if it is not installed. */
  toolchains(tool: string): Promise<readonly Toolchain[]>
  /**
   * Runs a program to see whether it works, and what it prints.
   *
   * @param program a name on the PATH, or an absolute path
   * @param options what it is called with; the option that prints its version by default
   */
  check(program: string, options?: readonly string[]): Promise<ToolCheck>
  /** Whether its programs are those of an image; missing if not. */
  readonly hasImage?: boolean
  /** Memory of the server in bytes; null if it is not known. */
  readonly memoryBytes: number | null
}

/** Whether a program runs. */
export type ToolCheck =
  | {
      works: true
      /** The version that it printed; null if there is none in it. */
      version: string | null
      /** What it printed. */
      output?: string
    }
  | {
      works: false
      /** The line of its output that says why, at most 200 characters. */
      error: string
    }

/** How a program ended. */
export interface ProgramResult {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Most characters of an error that is quoted. @bound reader */
const MAX_ERROR = 200

/** Returns whether a program works, by how it ended when it was asked for its version. */
export function checkOf({ exitCode, stdout, stderr }: ProgramResult): ToolCheck {
  if (exitCode === 0) return { works: true, version: versionIn(`${stdout}\n${stderr}`), output: stdout }
  const lines = `${stderr}\n${stdout}`.split('\n').map((line) => line.trim())
  const telling = lines.find((line) =>
    /error|exception|cannot|could not|not found|no such|denied/i.test(line),
  )
  const error = telling ?? lines.find((line) => line !== '') ?? `it ended with exit code ${exitCode}`
  return { works: false, error: error.slice(0, MAX_ERROR) }
}
