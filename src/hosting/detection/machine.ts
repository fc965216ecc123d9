/** A tool that is installed. Paths are the same on the machine and in its servers. */
export interface Toolchain {
  /** `python`, `go`, `node`, `java`, … */
  readonly tool: string
  /** Such as `3.12.4`. */
  readonly version: string
  /** The program. */
  readonly path: string
  /** The directory to put first on PATH; null where that would select another version. */
  readonly bin: string | null
  /** Whether it is the one on PATH. */
  readonly isDefault: boolean
}

/** The programs that an app's commands can call. */
export interface Machine {
  /** Reports whether a program of this name is on the PATH. */
  has(name: string): Promise<boolean>
  /** Returns the installed versions of a tool, the one on PATH first; none if it is not installed. */
  toolchains(tool: string): Promise<readonly Toolchain[]>
}
