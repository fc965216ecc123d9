/**
 * A server's files, as berth itself reaches them: directly, so that they can be read and written
 * while the server sleeps. Whatever runs on the server may plant symbolic links or swap directories
 * while a call is under way; an implementation keeps every access inside the workspace even then.
 *
 * Paths are relative to the workspace or begin with `/workspace/`; separators are `/`.
 */
export interface Workspace {
  /**
   * Relative paths of all regular files, sorted by code point, links not followed. `.git` and
   * `node_modules` directories are left out unless `all` is set.
   */
  list(options: { all: boolean }): Promise<string[]>

  /** The bytes of a regular file. Throws `WorkspaceError` `outside`, `missing`, `not_a_file`. */
  read(path: string): Promise<Uint8Array>

  /**
   * A regular file, to be read in parts, and as it was when it was opened even where another takes its place. The
   * caller disposes of it. Throws `WorkspaceError` `outside`, `missing`, `not_a_file`.
   */
  open(path: string): Promise<WorkspaceFile>

  /**
   * Whether a file that was open under this identity is still what stands at the path, with the content it had. Much
   * cheaper than opening it, and it tells nothing else of what stands there.
   */
  unchanged(path: string, identity: string): Promise<boolean>

  /**
   * What stands in a directory, sorted by code point; links as `other`, names that are not UTF-8 left out. Throws
   * `WorkspaceError` `outside`, `missing`, `not_a_file`.
   */
  entries(path: string): Promise<DirectoryEntry[]>

  /**
   * Replaces or creates a file atomically: a reader sees the old bytes or the new, never a part.
   * Missing parent directories are made. Throws `WorkspaceError` `outside`, `not_a_file`, `invalid`.
   */
  write(path: string, content: Uint8Array): Promise<void>

  /** Removes a file, a link or a whole directory. Throws `WorkspaceError` `outside`, `missing`, `root`. */
  remove(path: string): Promise<void>

  /** What stands at the path (links inside the workspace followed), or null where nothing does. */
  stat(path: string): Promise<WorkspaceEntry | null>

  /**
   * An empty directory of this machine in which berth prepares what it is to `place`, on the workspace's file system and
   * out of reach of whatever runs on the server. One that a killed berth leaves goes at the next start.
   */
  staging(): Promise<Staging>

  /**
   * Moves a directory of a `staging` directory, or that directory itself, to a path, replacing whatever stands there: a reader
   * sees the old, for an instant nothing, or the new, never a part. A link at the path is replaced, not followed.
   * Missing parent directories are made. Folders become 0755, files 0644 or 0755.
   *
   * Throws `WorkspaceError` `outside`, `not_a_file` (a file on the way), `root`, `invalid`, `disk_full`; Error where
   * the directory holds a device, a pipe, a socket or a file with a second name.
   */
  place(dir: string, path: string): Promise<void>

  /**
   * Has changes under a directory told from when this resolves, until the watch is closed. Throws
   * `WorkspaceError` `outside`, `missing`.
   */
  watch(path: string, options: WatchOptions): Promise<WorkspaceWatch>

  /** Bytes in use: the sum of what the file system has allocated for files, each inode once. */
  usage(): Promise<number>
}

/** What a path of a workspace leads to. */
export interface WorkspaceEntry {
  kind: 'file' | 'directory' | 'other'
  /** Bytes, for a file. */
  size: number
}

/** A directory to prepare things in. Disposing of it removes it with all that was not placed. */
export interface Staging extends AsyncDisposable {
  /** Absolute path on this machine. */
  readonly path: string
}

/** What a watch tells. */
export interface WatchOptions {
  /** Whether a file or directory, by its path relative to the watched directory, is passed over with all below it. */
  ignored(path: string): boolean
  /** Called for each file that is written, made or removed, with such a path. */
  onChange(path: string): void
}

/** A watch under way. */
export interface WorkspaceWatch {
  /** Ends it. */
  close(): Promise<void>
}

/** Something that stands in a directory. */
export interface DirectoryEntry {
  name: string
  kind: 'file' | 'directory' | 'other'
}

/** A file that is open. */
export interface WorkspaceFile extends Disposable {
  /** Bytes, when it was opened. */
  readonly size: number
  /** When its content was last written, milliseconds since 1970. */
  readonly modifiedAt: number
  /** When anything of it last changed, milliseconds since 1970; no program can set this back. */
  readonly changedAt: number
  /** Another text for another file, and after each change of this one. */
  readonly identity: string
  /** Bytes from an offset on; fewer than asked for where the file ends before. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>
}

/** Why a workspace refused a path. */
export type WorkspaceFault =
  /** The path, or a link on the way, leads out of the workspace. */
  | 'outside'
  /** Nothing stands there. */
  | 'missing'
  /** Something stands there, or on the way, that is not a regular file. */
  | 'not_a_file'
  /** The workspace's own directory was meant; it cannot be replaced or removed. */
  | 'root'
  /** The path can name no file: empty, a NUL byte, a component or the whole too long. */
  | 'invalid'
  /** The disk under the data directory is full. */
  | 'disk_full'

/** A refused path: nothing was changed. */
export class WorkspaceError extends Error {
  override readonly name = 'WorkspaceError'

  constructor(
    readonly fault: WorkspaceFault,
    message: string,
  ) {
    super(message)
  }
}
