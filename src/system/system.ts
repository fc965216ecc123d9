/**
 * What operating systems do differently, as interfaces. `linux/` and `darwin/` implement them; the other files of this
 * directory choose one by `process.platform`, and load no library before the first call. What only Linux has, such as
 * Landlock, seccomp and sock_diag, is in `linux/` without an interface: only isolations that need Linux reach it. To use
 * something that both do differently, add it to an interface here, and to a file of each.
 *
 * `darwin/` is compiled for each release and its parsers are tested with bytes laid out by Apple's headers. We have never
 * run it.
 */

/** The system calls of sandboxd that Bun has no function for. */
export interface Libc {
  /**
   * Creates a pipe. Bun gives children socket pairs for output; opening `/dev/stdout` on these fails with ENXIO,
   * which breaks scripts that work elsewhere. The end that this process keeps, `ours`, never blocks.
   */
  pipe(ours: 'read' | 'write'): { read: number; write: number }
  /** Gives a pipe room for a number of bytes, if this user may have so many. */
  widen(pipe: number, bytes: number): void
  /** Returns an unnamed file, in memory if the system has such files, for standard input of any size. */
  memoryFile(): number
  /** Returns another descriptor of the same file, which no child inherits. */
  duplicate(fd: number): number
  /**
   * Sends what a connected socket has room for, without waiting.
   *
   * @returns the number of bytes; 0 also if the peer is gone
   */
  send(socket: number, bytes: Uint8Array): number
  /** Makes orphans of the sandbox children of this process, if the system can. */
  adoptOrphans(): void
  /** Returns a child that has ended and was not reaped yet, without reaping it; null if there is none (waitid(2)). */
  endedChild(): number | null
  /** Reaps a child that has ended and that Bun did not start. */
  reap(pid: number): void
  /** Keeps processes of the same user from tracing this one or taking its descriptors. */
  forbidTracing(): void
  /**
   * Ignores signals that would end this process and that it has no use for. What Bun starts has the default actions again. A
   * process 1 is spared the default actions, but not while its first thread blocks signals, as it does when it starts a
   * program; and Bun's handlers for crashes end it.
   */
  ignoreSignals(): void
  /** Gives this process a new session keyring; a shared one would contain other programs' keys. */
  leaveKeyring(): void
  /** Sets a resource limit on this process and all it starts. */
  limit(resource: LimitedResource, value: number): void
  /** Leaves the processor to other threads for a moment. @param microseconds less than a million */
  rest(microseconds: number): void
  /** Counts the threads of Bun's pool, by their names; infinite if the limit of processes does not count threads. */
  poolThreads(): number
  /**
   * Opens this process's own priority when memory runs out, to be written. To be called before `forbidTracing`.
   *
   * @param inherited a descriptor under which another process may have opened it
   * @returns null if there is none, or this process may not write it
   */
  openOomScore(inherited: number): number | null
}

/** A resource that `Libc.limit` limits. */
export type LimitedResource = 'fileBytes' | 'core' | 'processes' | 'openFiles'

/** A pseudo-terminal as two descriptors, which the caller has to close. Neither becomes a controlling terminal. */
export interface Pty {
  /** Reading it returns the output, writing to it types. Neither blocks. */
  readonly master: number
  /** The terminal that programs have. */
  readonly slave: number
}

/** How a program gets a terminal as its controlling one, which makes Ctrl-C and job control work. */
export interface ControllingStart {
  /** The command line that runs the program's behind it, with the terminal as standard input. */
  readonly prefix: readonly string[]
  /** Whether the process has to be started in a session of its own. */
  readonly newSession: boolean
}

/** The system calls for pseudo-terminals. Bun's own terminal cannot hold back output for a slow reader. */
export interface PtyCalls {
  /**
   * Opens a terminal.
   *
   * @throws Error that says why none can be opened
   */
  open(): Pty
  /** Sets the size; the programs in front learn of it by SIGWINCH. */
  resize(master: number, size: { readonly columns: number; readonly rows: number }): void
  /**
   * Returns how a program gets its terminal; null if a program for that is missing.
   *
   * @param path the PATH that the program is looked for in
   */
  control(master: number, path: string): ControllingStart | null
}

/** Something that holds memory of a server. */
interface MemoryHolder {
  readonly bytes: number
  /** Frees what it holds. */
  end(): void
}

/** A server's memory. */
export interface ServerMemory {
  readonly bytes: number
  readonly holders: readonly MemoryHolder[]
}

/** What of a sandbox is its server's alone. */
export interface MemoryScope {
  /** Whether it has namespaces of its own. */
  readonly namespaces: boolean
  /** Whether it has a network of its own. */
  readonly network: boolean
  /** Whether its programs cannot hide their descriptors. */
  readonly descriptorsShown: boolean
}

/** Measures a server's memory. */
export interface MemoryMeter {
  /**
   * Measures what processes hold. Pages that several share are counted once where the system shows that.
   *
   * @param limit bytes; below it, `holders` may be empty
   */
  measure(pids: readonly number[], limit: number): ServerMemory
  /** Measures the unread data in the sockets of the server's own network; null if it has none. */
  readonly sockets: {
    /** Returns a bound of the bytes, for the cost of reading a few numbers. */
    most(): number
    /** @param find lists the server's processes; called only if they exceed the limit */
    measure(find: () => number[], limit: number): ServerMemory
  } | null
}

/** What sandboxd takes from itself and from every command after it. */
export interface Confinement {
  /** Whether the system calls that namespaces do not separate are refused. */
  systemCalls: boolean
  /**
   * Whether Unix sockets are refused, except pairs of connected ones: the sandbox does not hide those of the user's
   * programs, and a filter of system calls does not see paths. Needs `systemCalls`.
   */
  unixSockets: boolean
  /**
   * Whether no file gets a set-user-id or set-group-id bit: commands reach the user's programs, and other users of the
   * machine the server's files. Needs `systemCalls`.
   */
  setIdBits: boolean
  /**
   * Whether files of /proc cannot be written, such as sandboxd's priority when memory runs out: if berth runs as root,
   * the kernel takes the sandbox's user for their owner.
   */
  procWrites: boolean
  /** Whether abstract Unix sockets of programs outside are out of reach: the sandbox has no network of its own. */
  abstractSockets: boolean
}

/** A process. */
export interface ProcessInfo {
  pid: number
  /**
   * The process that has started it, or has adopted it. On macOS, where launchd adopts all orphans: the nearest ancestor that
   * lives, as far as this process has seen those between.
   */
  parent: number
  group: number
  session: number
  /** When it started, in a unit of the system's: no two processes of a number have the same. Digits. */
  startTicks: string
}

/** What a process does, and what it has used. */
export interface ProcessUsage {
  readonly parentPid: number
  /** On a processor or ready for one, waiting for an event, waiting for a device, stopped. */
  readonly state: 'running' | 'sleeping' | 'waiting' | 'stopped'
  /** Milliseconds on a processor since its start. */
  readonly cpuMs: number
  /** The same of its children that have ended; 0 if the system does not count them. */
  readonly childCpuMs: number
  /** Milliseconds between the start of the machine and its own. */
  readonly startedMs: number
  readonly threads: number
}

/** A descriptor of a process. */
export interface Descriptor {
  readonly fd: number
  /** A file's path, with ` (deleted)` behind it if Linux has removed it; else `socket:[N]`, `pipe:[N]` or another text. */
  readonly target: string
  /** Returns the file that it leads to; null if it was closed. */
  file(): { readonly dev: bigint; readonly ino: bigint } | null
}

/** The processes of this machine. What has ended, or may not be looked at, counts as missing. */
export interface Processes {
  /** Returns the numbers of all processes, also of those that have ended and wait to be reaped. */
  pids(): number[]
  /** Lists all living processes; leaves out those that have ended and wait to be reaped. */
  list(): ProcessInfo[]
  /** Returns a process, or null if it has ended. */
  read(pid: number): ProcessInfo | null
  /** Takes note of a child that was started just now, if the system loses the descent of orphans otherwise. */
  note(pid: number): void
  /** Returns the children of a process; null if the system does not list them (on Linux: CONFIG_PROC_CHILDREN). */
  children(pid: number): number[] | null
  /** Reports whether a process is stopped, by a signal or a debugger. */
  isStopped(pid: number): boolean
  /** Returns the name of a process's program, cut to 15 characters; null if it has ended. */
  name(pid: number): string | null
  /** Returns the beginning of a process's arguments, each with a zero behind it, in Latin-1; null if they are not readable. */
  commandLine(pid: number): string | null
  /** Returns the same of the variables that it was started with. */
  environment(pid: number): string | null
  usage(pid: number): ProcessUsage | null
  /** Returns the bytes of memory that a process has, and of those the ones that no file on disk has. */
  memory(pid: number): { readonly residentBytes: number; readonly ownBytes: number } | null
  /** Returns the number of the user that a process belongs to; null if it has ended. */
  owner(pid: number): number | null
  /** Reports whether a process runs a file. */
  runs(pid: number, file: { readonly dev: number; readonly ino: number }): boolean
  /** Returns the descriptors of a process, read as they are taken; null if they may not be looked at. */
  descriptors(pid: number): Iterable<Descriptor> | null
  /** Returns milliseconds since the start of the machine. */
  uptimeMs(): number
  /** Returns the number of this process's PID namespace, in which the numbers of processes are valid; null if unknown. */
  namespace(): string | null
  /** Reports whether the keys of its terminal reach the group of this process; null if unknown. */
  isInForeground(): boolean | null
  /** Returns a function that reports whether this process was started to ignore a signal. */
  ignoredSignals(): (signal: number) => boolean
  /** Returns how many descriptors this process may have open; null if that is unknown. */
  maxOpenFiles(): number | null
  /** Returns how many descriptors this process has open. */
  openFiles(): number
  /** Returns how much of a user's limit of processes is taken: on Linux his threads, on macOS his processes. */
  countThreadsOf(uid: number): number
  /** Returns the memory that programs can still get on this machine; null if it is unknown. */
  availableMemory(): number | null
}

/**
 * A TCP socket of this machine. Addresses are as Linux's /proc/net/tcp writes them, with words in the machine's byte order.
 */
export interface TcpSocket {
  readonly address: string
  readonly port: number
  readonly remotePort: number
  readonly listens: boolean
  /** Whose it is: the number of a user. */
  readonly uid: number
  /** The kernel's number for it, as `Descriptor.target` has it; `0` for one that no process has anymore. */
  readonly inode: string
}

/** The TCP sockets of this machine. */
export interface TcpSockets {
  /**
   * Returns the listening sockets of a process's network; null if the system does not show them. On macOS those of this
   * user's processes.
   */
  listening(pid: number): TcpSocket[] | null
  /** Returns the sockets of berth's own network whose local port is one of these, as `listening` does. */
  withLocalPorts(ports: readonly number[]): Promise<TcpSocket[] | null>
}

/** One end of a TCP connection: the address and port of a socket, then those of its peer. */
export interface ConnectedEnd {
  readonly address: string
  readonly port: number
  readonly peerAddress: string
  readonly peerPort: number
}

/** Whose a socket is. */
export interface SocketOwner {
  /** The number of a user. */
  readonly uid: number
  /** The kernel's number for the socket; `0` for one that no process has anymore. */
  readonly inode: string
}

/** A connected socket. */
export interface ConnectedSocket extends SocketOwner {
  /** A number that the kernel gives to no other socket before the machine starts again. Inodes are used again. */
  readonly cookie: bigint
}

/** The system calls that copy files. */
export interface CopyCalls {
  /** Returns the next offset with data; negative if there is none. */
  data(descriptor: number, offset: number): number
  /** Returns the next offset of a hole: the end of the file at last. */
  hole(descriptor: number, offset: number): number
  /** Has an empty file share the blocks of another one. @returns whether the system and the file system can */
  share(from: number, copy: number): boolean
}
