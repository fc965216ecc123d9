/** A tool that is installed. */
export interface Toolchain {
  /** The command's name: `python3`, `go`, `node`, `java`, … */
  readonly tool: string
  /** Such as `3.12.4`. */
  readonly version: string
  /** Directory of its programs, absolute in a server. */
  readonly bin: string
  /** Whether it is the one on PATH. */
  readonly isDefault: boolean
}

/** The programs that an app's commands can call. */
export interface Machine {
  /** Reports whether a program of this name is on the PATH. */
  has(name: string): Promise<boolean>
  /** Returns the installed versions of a tool, the one on PATH first; none if it is not installed. */
  versions(tool: string): Promise<readonly Toolchain[]>
}
