/** A server's files: reads, writes, lists and packs them, whether the server runs or sleeps. */
import { ExplainedError } from '../errors.ts'

/**
 * A server's files, as berth itself accesses them: directly, so they can be read and written while the server sleeps.
 * Processes on the server may plant symbolic links or swap directories at any time; an implementation still keeps
 * every access inside the workspace.
 *
 * Paths are relative to the workspace or begin with `/workspace/`; separators are `/`.
 */
export interface Workspace {
  /**
   * Returns relative paths of all regular files, sorted by code point, links not followed. `.git` and
   * `node_modules` directories are left out unless `all` is set. Throws `WorkspaceError` `too_large`.
   */
  list(options: { all: boolean }): Promise<string[]>

  /**
   * Describes files and links below a directory by their content, sorted by code point. No link is followed.
   *
   * @param directory an empty path is the workspace itself
   * @param paths relative to the directory, each a file or a link; others are left out. Null describes everything but
   * `.git` and `node_modules` directories. Throws `WorkspaceError` `outside`, `missing`, `not_a_file`, `invalid` (a
   * path that is no plain one).
   */
  manifest(directory: string, paths: readonly string[] | null): Promise<ManifestEntry[]>

  /**
   * Returns the bytes of a regular file. Throws `WorkspaceError` `outside`, `missing`, `not_a_file`, `too_large`.
   *
   * @param most bytes that the file may have. A program can make a file of any size at any time, without any disk
   */
  read(path: string, most?: number): Promise<Uint8Array>

  /**
   * Opens a regular file to be read in parts. Later reads see the opened file even if another replaces it. The caller
   * disposes of it. Throws `WorkspaceError` `outside`, `missing`, `not_a_file`.
   */
  open(path: string): Promise<WorkspaceFile>

  /**
   * Reports whether the path still leads to the file that had this identity when it was open, with the same content.
   * Much cheaper than opening it.
   */
  unchanged(path: string, identity: string): Promise<boolean>

  /**
   * Lists a directory, sorted by code point. Links are `other`; names that are not UTF-8 are left out. Throws
   * `WorkspaceError` `outside`, `missing`, `not_a_file`, `too_large`.
   */
  entries(path: string): Promise<DirectoryEntry[]>

  /**
   * Replaces or creates a file atomically: a reader sees the old bytes or the new, never a part.
   * Missing parent directories are made. Throws `WorkspaceError` `outside`, `not_a_file`, `invalid`.
   *
   * @param content may be given piece by piece; if the iteration throws, nothing is changed, and that error is thrown
   */
  write(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>

  /** Removes a file, a link or a whole directory. Throws `WorkspaceError` `outside`, `missing`, `root`. */
  remove(path: string): Promise<void>

  /** Returns the entry at the path (following links inside the workspace), or null if there is none. */
  stat(path: string): Promise<WorkspaceEntry | null>

  /**
   * Creates an empty directory on this machine in which berth prepares files for `moveIn`, out of reach of processes
   * on the server. The next start removes one that a killed berth leaves.
   */
  staging(options?: StagingOptions): Promise<Staging>

  /**
   * Returns a directory of this name that an earlier `staging({ isState: true })` has made, which may be gone. Throws Error for a name that none
   * can have.
   */
  stagingNamed(name: string): Staging

  /**
   * Moves a directory in a `staging` directory, or that directory itself, to a path, replacing any entry there. A
   * reader sees the old tree, for an instant nothing, or the new tree, never a part, even if the workspace is on
   * another machine. A link at the path is replaced, not followed. Creates missing parent directories. Directories
   * become 0755, files 0644 or 0755.
   *
   * Throws `WorkspaceError` `outside`, `not_a_file` (a file on the way), `root`, `invalid`, `disk_full`; Error if the
   * directory holds a device, a pipe, a socket or a file with a second hard link.
   */
  moveIn(dir: string, path: string): Promise<void>

  /**
   * Moves the files and links of such a directory into another one, each to the same path there, in place of any file or
   * link. What else is there stays. Creates missing directories. Each file is replaced in one step, all of them are not.
   *
   * Throws as `moveIn` does, and `WorkspaceError` `not_a_file` for a directory at the path of a file.
   *
   * @param path an empty one is the workspace itself
   */
  mergeIn(dir: string, path: string, options?: MergeOptions): Promise<void>

  /**
   * Reports changes below a directory, from the time this resolves until the watch is closed. Throws `WorkspaceError`
   * `outside`, `missing`.
   */
  watch(path: string, options: WatchOptions): Promise<WorkspaceWatch>

  /**
   * Returns everything as a tar (POSIX.1-2001 pax) that streams: directories, files, links and hard links, with
   * permission bits and times. Sockets, pipes and devices are left out. The tree should not change meanwhile: a file
   * that does is there in part. The caller ends the iteration.
   */
  pack(): AsyncIterable<Uint8Array>

  /**
   * Adds the entries of such a tar, which need not be trusted: nothing is written outside. Throws `WorkspaceError`
   * `disk_full`; Error if it is damaged or an entry exists. What was added before stays.
   */
  unpack(archive: AsyncIterable<Uint8Array>): Promise<void>

  /** Returns the bytes in use: what the file system has allocated for files, each inode once. */
  usage(): Promise<number>
}

/** The entry at a path of a workspace. */
export interface WorkspaceEntry {
  kind: 'file' | 'directory' | 'other'
  /** Bytes, for a file. */
  size: number
}

/** A file or a link of a tree, described by its content. */
export type ManifestEntry =
  | {
      readonly kind: 'file'
      readonly path: string
      /** In bytes. */
      readonly size: number
      /** In hexadecimal. */
      readonly sha256: string
      /** Whether its owner may execute it. */
      readonly executable: boolean
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

/** A directory to prepare things in. Disposing of it removes it with all that was not placed. */
export interface Staging extends AsyncDisposable {
  /** Absolute path on this machine. Its last part is its name. */
  readonly path: string
}

/** The options of `Workspace.staging`. */
export interface StagingOptions {
  /**
   * Whether it is part of the state, so that snapshots have it. What needs one after a kill has to look for it while berth recovers:
   * the start then removes it.
   */
  readonly isState: boolean
}

/** A watch's filter and callback. */
export interface WatchOptions {
  ignored: WatchFilter
  /** Called for each file that is written, made or removed, with such a path. */
  onChange(path: string): void
  /** Called once if the system's limit of watched files is reached (inotify(7)): some changes are not reported. */
  onLimit(): void
}

/** The options of `Workspace.mergeIn`. */
export interface MergeOptions {
  /** Whether files keep their permissions, without set-user-id and the like. */
  readonly keepModes: boolean
}

/** What a watch leaves out, by paths relative to the watched directory. */
export interface WatchFilter {
  /** Files and directories of these names, with everything below. */
  readonly names: readonly string[]
  /** Matches the paths of other files to leave out. */
  readonly files: RegExp
  /** A directory of which nothing is left out; null for none. */
  readonly kept: string | null
}

/** A watch under way. */
export interface WorkspaceWatch {
  /** Ends it. */
  close(): Promise<void>
}

/** An entry of a directory. */
export interface DirectoryEntry {
  name: string
  kind: 'file' | 'directory' | 'other'
}

/** A file that is open. */
export interface WorkspaceFile extends Disposable {
  /** Bytes, when it was opened. */
  readonly size: number
  /** Permission bits, 0 to 0o777. */
  readonly mode: number
  /** When its content was last written, milliseconds since 1970. */
  readonly modifiedAt: number
  /** When anything of it last changed, milliseconds since 1970; no program can set this back. */
  readonly changedAt: number
  /** Another text for another file, and after each change of this one. */
  readonly identity: string
  /** Reads bytes from an offset; returns fewer than asked for at the end of the file. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>
}

/** Most bytes that `Workspace.read` returns if its caller names no limit. @bound program */
export const MAX_READ_BYTES = 64 * 1024 * 1024

/** Why a workspace refused a path. */
export const WORKSPACE_FAULTS = [
  /** The path, or a link on the way, leads out of the workspace. */
  'outside',
  /** There is no entry. */
  'missing',
  /** An entry at the path, or on the way, is not a regular file. */
  'not_a_file',
  /** The path names the workspace's own directory, which cannot be replaced or removed. */
  'root',
  /** The path can name no file: empty, a NUL byte, a component or the whole too long. */
  'invalid',
  /** The disk of the server's files is full. */
  'disk_full',
  /** The file is larger than the caller takes, or there are more names than are listed. */
  'too_large',
] as const

/** One of `WORKSPACE_FAULTS`. */
export type WorkspaceFault = (typeof WORKSPACE_FAULTS)[number]

/**
 * A refused path: nothing was changed. The rules for paths are in `local/workspace-path.ts`, for the links on their way in
 * `local/resolve-path.ts`.
 */
export class WorkspaceError extends ExplainedError {
  override readonly name = 'WorkspaceError'

  constructor(
    readonly fault: WorkspaceFault,
    message: string,
  ) {
    super(message)
  }
}
