import type { ComputeDriver, Limits } from '../../compute/driver.ts'
import { absent, type Finding, ok } from './finding.ts'

/** Enough for the one command. */
const LIMITS: Limits = { cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 24 }

/** Milliseconds that the command may take. */
const PATIENCE_MS = 10_000

/** Exit codes of the command: something is no terminal, or it is not the controlling one. */
const NO_TERMINAL = 3
const NOT_CONTROLLING = 4

const COMMAND = `test -t 0 && test -t 1 && test -t 2 || exit ${NO_TERMINAL}; (: </dev/tty) 2>/dev/null || exit ${NOT_CONTROLLING}`

const MOUNT = 'Mount devpts on /dev/pts, with ptmxmode=666.'

/**
 * Terminals on servers: one is opened for real, on a server of the tier that is used.
 *
 * @param driver that tier's, on a directory that may be written; null where no tier can be used
 */
export async function examineTerminal(driver: ComputeDriver | null): Promise<Finding> {
  const name = 'terminal'
  if (driver === null) return { name, status: 'absent', detail: 'not tried: no isolation tier can be used' }
  try {
    const exitCode = await tryTerminal(driver)
    if (exitCode === 0) return ok(name, 'servers have pseudo-terminals')
    if (exitCode === NOT_CONTROLLING) {
      const detail =
        'servers have pseudo-terminals, but Ctrl-C and job control do not work: setsid is missing'
      return absent(name, detail, 'Install util-linux.')
    }
    return absent(name, `a pseudo-terminal is none to its program (exit code ${exitCode})`, MOUNT)
  } catch (error) {
    return absent(name, `no pseudo-terminal: ${error instanceof Error ? error.message : error}`, MOUNT)
  }
}

async function tryTerminal(driver: ComputeDriver): Promise<number> {
  const handle = await driver.create('srv_doctor')
  try {
    const sandbox = await driver.start('srv_doctor', handle, LIMITS)
    try {
      const terminal = sandbox.terminal({
        command: COMMAND,
        size: { columns: 80, rows: 24 },
        timeoutMs: PATIENCE_MS,
        onOutput() {},
      })
      return (await terminal.exit).exitCode
    } finally {
      await sandbox.stop()
    }
  } finally {
    await driver.destroy(handle)
  }
}
