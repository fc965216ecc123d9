import { readStatFields, STAT } from '../../runtime/process-stat.ts'

/** Keys that are read from the terminal. */
export interface Keys {
  /** Gives the keyboard back. */
  close(): void
}

/** Milliseconds between looks whether a job that was put in the background is back. */
const FOREGROUND_EVERY_MS = 500

/** Suspends the process, as a terminal does that is not in raw mode. */
const CTRL_Z = '\x1a'

/**
 * Calls `press` with each key that is typed, while the process is in the terminal's foreground: reading in the
 * background would stop it (SIGTTIN).
 */
export function readKeys(press: (key: string) => void): Keys {
  const { stdin } = process
  const onData = (data: Buffer): void => {
    for (const key of data.toString('latin1')) {
      if (key === CTRL_Z) suspend()
      else press(key)
    }
  }
  let isReading = false
  let waiting: Timer | undefined
  const begin = (): void => {
    if (isReading || !isInForeground()) return
    clearInterval(waiting)
    isReading = true
    stdin.setRawMode(true)
    stdin.on('data', onData)
    stdin.resume()
  }
  const end = (): void => {
    if (!isReading) return
    isReading = false
    stdin.off('data', onData)
    stdin.pause()
    if (isInForeground()) stdin.setRawMode(false)
  }
  const suspend = (): void => {
    end()
    process.kill(process.pid, 'SIGTSTP')
  }
  const resume = (): void => {
    begin()
    // A shell says nothing when it brings a job back that ran in the background.
    clearInterval(waiting)
    if (!isReading) waiting = setInterval(begin, FOREGROUND_EVERY_MS)
  }
  process.on('SIGCONT', resume)
  process.on('exit', end)
  begin()
  return {
    close() {
      process.off('SIGCONT', resume)
      clearInterval(waiting)
      process.off('exit', end)
      end()
    },
  }
}

/** Reports whether this process is in the foreground of its terminal (proc(5), fields pgrp and tpgid). */
function isInForeground(): boolean {
  const fields = readStatFields('self')
  return fields === null || fields[STAT.group] === fields[STAT.foregroundGroup]
}
