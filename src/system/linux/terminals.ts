import { ptr } from 'bun:ffi'
import { closeSync, openSync } from 'node:fs'
import { messageOf } from '../../runtime/error-info.ts'
import { openLibc } from '../libc.ts'
import type { PtyCalls } from '../system.ts'

const O_RDWR = 2
const O_NOCTTY = 0o400
const O_NONBLOCK = 0o4000
const O_CLOEXEC = 0o2000000

/** Requests of ioctl_tty(2), the same numbers on x86-64 and arm64. */
const TIOCSWINSZ = 0x5414
const TIOCSPTLCK = 0x40045431
const TIOCGPTPEER = 0x5441

/** Loads the C library; about 0.3 ms. Throws if there is none. */
export function loadLinuxPtyCalls(): PtyCalls {
  const { ioctl } = openLibc({ ioctl: { args: ['int', 'u64', 'u64'], returns: 'int' } })
  return {
    open() {
      const master = openMultiplexer()
      ioctl(master, TIOCSPTLCK, ptr(new Int32Array(1)))
      // Through the master, not by name: the name may lead elsewhere if /dev is another one.
      const slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
      if (slave >= 0) return { master, slave }
      closeSync(master)
      throw new Error('The system refuses the other side of /dev/ptmx.')
    },
    resize(master, { columns, rows }) {
      ioctl(master, TIOCSWINSZ, ptr(new Uint16Array([rows, columns, 0, 0])))
    },
    control(_master, path) {
      const setsid = Bun.which('setsid', { PATH: path })
      // It makes the session; a session leader would have to fork for that.
      return setsid === null ? null : { prefix: [setsid, '-c'], newSession: false }
    },
  }
}

function openMultiplexer(): number {
  try {
    return openSync('/dev/ptmx', O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
  } catch (error) {
    const why = messageOf(error)
    throw new Error(`No terminal can be opened: ${why}; it takes a devpts mounted on /dev/pts.`, {
      cause: error,
    })
  }
}
