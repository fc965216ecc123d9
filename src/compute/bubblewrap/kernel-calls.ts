import { type Pointer, ptr, read } from 'bun:ffi'
import { closeSync, fstatSync, openSync, writeFileSync } from 'node:fs'
import { openLibc } from '../../system/libc.ts'

/** setresuid(2), by processor. The C library's function changes every thread. */
const SETRESUID = process.arch === 'arm64' ? 147 : 117
/** System calls that older C libraries have no function for; the same on all processors. */
const OPEN_TREE = 428
const MOVE_MOUNT = 429
const MOUNT_SETATTR = 442

const CLONE_VM = 0x100
const CLONE_FS = 0x200
const CLONE_FILES = 0x400
const CLONE_NEWNS = 0x20000
const CLONE_NEWUSER = 0x1000_0000

const AT_FDCWD = -100
const AT_EMPTY_PATH = 0x1000
const AT_RECURSIVE = 0x8000
const OPEN_TREE_CLONE = 1
const O_CLOEXEC = 0o2000000
const MOVE_MOUNT_F_EMPTY_PATH = 4
const MOUNT_ATTR_NOSUID = 0x2n
const MOUNT_ATTR_NODEV = 0x4n
const MOUNT_ATTR_IDMAP = 0x100000n
const MS_PRIVATE = 1n << 18n

const PR_GET_DUMPABLE = 3
const PR_SET_DUMPABLE = 4
const PR_GET_SECUREBITS = 27
const PR_SET_SECUREBITS = 28
const SECBIT_NO_SETUID_FIXUP = 1 << 2

const SIG_SETMASK = 2
const SIGKILL = 9
const WNOHANG = 1
const WAIT_FOR_ALL_KINDS = 0x4000_0000
const AF_UNIX = 1
const SOCK_DGRAM = 2

/**
 * Microseconds after which the process that makes a user namespace ends by itself. It has all descriptors of berth, so
 * it must not outlive a berth that is killed meanwhile. Until it is waited for, its namespace can be set even when it
 * has ended.
 */
const LIFE_US = 10_000

/** Bytes of a stack for a process that only waits, and of a set of signals. */
const STACK_BYTES = 65_536
const SIGNALS_BYTES = 128

/** Milliseconds between two looks whether killed processes have ended, and the most of them that nobody waits for. */
const LOOK_MS = 10
/** @bound program */
const MAX_ENDING = 16

/** How often berth's main thread tries to leave a sandbox's mount namespace. */
const RETURNS = 100

/**
 * The system calls by which root gives a sandbox a user of the kernel's own. Some change the calling thread alone, and
 * are undone before they return: they must be called on the main thread, which starts the sandboxes.
 */
interface KernelCalls {
  /**
   * Makes a user namespace.
   *
   * @param map the lines of its uid_map and its gid_map, see user_namespaces(7)
   * @param owner the user under whose count of namespaces, inotify instances and so on it falls
   * @returns its descriptor, the caller's to close
   */
  makeUserNamespace(map: string, owner: number): number
  /**
   * Returns a copy of a directory's mount that shows the owners of files as a user namespace maps them. It is nowhere
   * in the file tree yet; the descriptor is the caller's to close. Throws where the file system cannot do that.
   */
  mapMount(path: string, userNamespace: number): number
  /** Puts such a mount into the mount namespace of a process. */
  attachMount(mount: number, pid: number, path: string): void
  /** Takes a name that only one process of the machine can have, until the descriptor is closed; null if it is taken. */
  claim(name: string): number | null
}

/** Loads the C library. Throws if there is none. */
export function loadKernelCalls(): KernelCalls {
  const libc = openLibc({
    syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
    clone: { args: ['ptr', 'ptr', 'int', 'ptr'], returns: 'int' },
    dlsym: { args: ['ptr', 'ptr'], returns: 'ptr' },
    kill: { args: ['int', 'int'], returns: 'int' },
    waitpid: { args: ['int', 'ptr', 'int'], returns: 'int' },
    prctl: { args: ['int', 'u64', 'u64', 'u64', 'u64'], returns: 'int' },
    pthread_sigmask: { args: ['int', 'ptr', 'ptr'], returns: 'int' },
    unshare: { args: ['int'], returns: 'int' },
    setns: { args: ['int', 'int'], returns: 'int' },
    fchdir: { args: ['int'], returns: 'int' },
    chroot: { args: ['ptr'], returns: 'int' },
    socket: { args: ['int', 'int', 'int'], returns: 'int' },
    bind: { args: ['int', 'ptr', 'u32'], returns: 'int' },
    __errno_location: { args: [], returns: 'ptr' },
  })
  const call = (number: number, ...args: Array<number | bigint>): number => {
    const [a = 0, b = 0, c = 0, d = 0, e = 0] = args
    return Number(libc.syscall(BigInt(number), BigInt(a), BigInt(b), BigInt(c), BigInt(d), BigInt(e)))
  }
  /** Throws the system's error if a result is negative. */
  const check = (result: number, what: string): number => {
    if (result >= 0) return result
    const place = libc.__errno_location()
    const number = place === null ? 0 : read.i32(place, 0)
    throw new Error(`${what} failed with error ${number}${number === 22 ? ' (EINVAL)' : ''}`)
  }
  const usleep = libc.dlsym(null, ptr(zeroEnded('usleep')))
  const nothing = zeroEnded('')

  /** Calls a function whose thread, and what it starts, receives no signal. */
  const withoutSignals = <T>(run: () => T): T => {
    const [all, before] = [new Uint8Array(SIGNALS_BYTES).fill(255), new Uint8Array(SIGNALS_BYTES)]
    libc.pthread_sigmask(SIG_SETMASK, ptr(all), ptr(before))
    try {
      return run()
    } finally {
      libc.pthread_sigmask(SIG_SETMASK, ptr(before), null)
    }
  }
  /** Killed processes that have not been waited for, with the stack that each may use until its end. */
  const ending: { pid: number; stack: Uint8Array }[] = []
  let looks: Timer | null = null
  const reap = (): void => {
    for (let first = ending[0]; first !== undefined; first = ending[0]) {
      const waits = ending.length > MAX_ENDING
      if (libc.waitpid(first.pid, null, WAIT_FOR_ALL_KINDS | (waits ? 0 : WNOHANG)) === 0) break
      ending.shift()
    }
    if (ending.length > 0) return
    clearInterval(looks ?? undefined)
    looks = null
  }
  /** Kills a process. Does not wait for its end: that takes milliseconds while all processors are busy. */
  const end = (pid: number, stack: Uint8Array): void => {
    libc.kill(pid, SIGKILL)
    ending.push({ pid, stack })
    reap()
    if (ending.length > 0) looks ??= setInterval(reap, LOOK_MS).unref()
  }

  /** Calls a function whose thread is another user, but keeps its capabilities. */
  const asUser = <T>(user: number, run: () => T): T => {
    const dumpable = libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
    const securebits = libc.prctl(PR_GET_SECUREBITS, 0, 0, 0, 0)
    libc.prctl(PR_SET_SECUREBITS, securebits | SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    try {
      check(call(SETRESUID, -1, user, -1), 'setresuid')
      return run()
    } finally {
      call(SETRESUID, -1, 0, -1)
      libc.prctl(PR_SET_SECUREBITS, securebits, 0, 0, 0)
      libc.prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0)
    }
  }

  return {
    makeUserNamespace(map, owner) {
      if (usleep === null) throw new Error('the C library has no usleep()')
      const stack = new Uint8Array(STACK_BYTES)
      const top = Math.floor((ptr(stack) + STACK_BYTES) / 16) * 16
      return withoutSignals(() => {
        // A process in the new namespace, which does nothing but usleep(3) on memory of this one. It costs 0.1 ms;
        // unshare(1) would cost 2.
        const flags = CLONE_NEWUSER | CLONE_VM | CLONE_FILES
        const pid = asUser(owner, () =>
          check(libc.clone(usleep, top as Pointer, flags, LIFE_US as Pointer), 'clone'),
        )
        try {
          for (const file of ['gid_map', 'uid_map']) writeFileSync(`/proc/${pid}/${file}`, map)
          return openSync(`/proc/${pid}/ns/user`, 'r')
        } finally {
          end(pid, stack)
        }
      })
    },

    mapMount(path, userNamespace) {
      const flags = OPEN_TREE_CLONE | O_CLOEXEC | AT_RECURSIVE
      const mount = check(call(OPEN_TREE, AT_FDCWD, ptr(zeroEnded(path)), flags), 'open_tree')
      try {
        // struct mount_attr: what to set, to clear, the propagation, the user namespace.
        const attributes = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
        const structure = new BigUint64Array([attributes, 0n, MS_PRIVATE, BigInt(userNamespace)])
        const all = AT_EMPTY_PATH | AT_RECURSIVE
        const size = structure.byteLength
        check(call(MOUNT_SETATTR, mount, ptr(nothing), all, ptr(structure), size), 'mount_setattr')
        return mount
      } catch (error) {
        closeSync(mount)
        throw error
      }
    },

    attachMount(mount, pid, path) {
      const opened: number[] = []
      const open = (file: string): number => {
        const fd = openSync(file, 'r')
        opened.push(fd)
        return fd
      }
      try {
        const [there, here] = [open(`/proc/${pid}/ns/mnt`), open('/proc/thread-self/ns/mnt')]
        if (fstatSync(there).ino === fstatSync(here).ino)
          throw new Error('the sandbox has no mounts of its own')
        const [root, directory] = [open('/'), open('.')]
        const target = zeroEnded(path)
        // Only a thread that shares its root and its working directory with no other may change its mounts.
        check(libc.unshare(CLONE_FS), 'unshare')
        check(libc.setns(there, CLONE_NEWNS), 'setns')
        const moved = call(MOVE_MOUNT, mount, ptr(nothing), AT_FDCWD, ptr(target), MOVE_MOUNT_F_EMPTY_PATH)
        leave(here, root, directory)
        if (moved !== 0) throw new Error(`move_mount to ${path} failed`)
      } finally {
        for (const fd of opened) closeSync(fd)
      }
    },

    claim(name) {
      // struct sockaddr_un with a name in no directory, which is free again when its socket is closed.
      const address = Buffer.from(`\x01\0\0${name}`)
      const socket = check(libc.socket(AF_UNIX, SOCK_DGRAM | O_CLOEXEC, 0), 'socket')
      if (libc.bind(socket, ptr(address), address.length) === 0) return socket
      closeSync(socket)
      return null
    },
  }

  /** Brings the main thread back from a sandbox's mounts, or ends berth: there it could not go on. */
  function leave(namespace: number, root: number, directory: number): void {
    for (let attempt = 1; libc.setns(namespace, CLONE_NEWNS) !== 0; attempt += 1) {
      if (attempt === RETURNS) {
        console.error("berth cannot leave a sandbox's mount namespace, and ends.")
        process.exit(1)
      }
      // A thread of the JavaScript engine that began meanwhile shares them.
      libc.unshare(CLONE_FS)
    }
    libc.fchdir(root)
    libc.chroot(ptr(zeroEnded('.')))
    libc.fchdir(directory)
  }
}

const zeroEnded = (text: string): Buffer => Buffer.from(`${text}\0`)
