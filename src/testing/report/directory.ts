/**
 * The directory of a report: which files it has, and which runs write to it.
 */

import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { StartupError } from '../../errors.ts'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import { namesIn } from '../../runtime/if-present.ts'
import { isAlive, markText, ownMark, parseMark } from '../../system/process-mark.ts'

/** Files and directories of a report, by what they hold. */
export const REPORT = {
  page: 'index.html',
  journal: 'journal.jsonl',
  har: 'requests.har',
  events: 'events.jsonl',
  deliveries: 'deliveries.jsonl',
  objects: 'objects.jsonl',
  findings: 'findings.jsonl',
  transcripts: 'transcripts',
  logs: 'logs',
  coverage: 'coverage.json',
  doctor: 'doctor.json',
  summary: 'summary.md',
  junit: 'junit.xml',
} as const

/** Shows that berth made the directory, and has a file for each run that writes to it. */
const MARKS = '.berth-report'

/** Name of the lock among the marks. */
const LOCK = 'lock'

/** Milliseconds between two looks at a lock, and until a lock that nobody gives back is taken. */
const LOCK_MS = { poll: 20, most: 60_000 }

/** Bytes of lines that are kept before they are written. */
const FULL_BYTES = 1024 * 1024

/**
 * A directory that a run writes its report to. Runs at the same time may share one: each appends whole lines to the same
 * files, and the last one to end finishes the report for all.
 */
export class ReportDirectory {
  readonly path: string
  readonly #mark: string
  /** Lines to append, by file. */
  #pending = new Map<string, string[]>()
  #pendingBytes = 0
  #failure: string | null = null
  /** Files of transcripts and logs of this run, by directory and name. */
  readonly #named = new Map<string, string>()

  private constructor(path: string, mark: string) {
    this.path = path
    this.#mark = mark
  }

  /**
   * Takes a directory, which is created with mode 0700. Replaces an older report, and adds to one that another run still writes.
   *
   * @throws StartupError if the directory has other files, or cannot be written
   */
  static take(path: string): ReportDirectory {
    const mark = ownMark()
    const name = mark === null ? String(process.pid) : markText(mark)
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 })
      const present = readdirSync(path)
      if (present.length > 0 && !present.includes(MARKS)) {
        throw new StartupError(
          `${path} has files, and none of them is of a report of berth. Name another directory with --report, or remove it.`,
        )
      }
      mkdirSync(join(path, MARKS), { recursive: true, mode: 0o700 })
      const others = runsOf(path)
      writeFileSync(join(path, MARKS, name), '')
      if (others.length === 0) clear(path)
    } catch (error) {
      if (error instanceof StartupError) throw error
      throw new StartupError(
        `The report cannot be written: ${messageOf(error)}. Name another directory with --report, or leave it out with --no-report.`,
      )
    }
    return new ReportDirectory(path, name)
  }

  /** Why a line could not be written, such as a full disk; null if all were. */
  get failure(): string | null {
    return this.#failure
  }

  /** Appends a line to a file. It is written with others, at the latest at the next `flush`. */
  append(file: string, line: string): void {
    const lines = this.#pending.get(file)
    if (lines === undefined) this.#pending.set(file, [line])
    else lines.push(line)
    this.#pendingBytes += line.length
    if (this.#pendingBytes > FULL_BYTES) this.flush()
  }

  /** Writes the lines so far: those of a file at once, so that a killed run leaves whole ones. */
  flush(): void {
    const pending = this.#pending
    this.#pending = new Map()
    this.#pendingBytes = 0
    try {
      for (const [file, lines] of pending) appendLines(join(this.path, file), `${lines.join('\n')}\n`)
    } catch (error) {
      this.#failure ??= messageOf(error)
    }
  }

  /**
   * Returns the file of a transcript or a log. If another run, or another log, has the name already, a number follows it.
   *
   * @param id identifies it within this run
   * @param wanted its name, which may have any characters
   */
  fileOf(directory: 'transcripts' | 'logs', id: string, wanted: string): string {
    const known = this.#named.get(`${directory} ${id}`)
    if (known !== undefined) return known
    const extension = directory === 'logs' ? 'log' : 'jsonl'
    const safe =
      wanted
        .replace(/[^\w.-]+/g, '-')
        .replace(/^\.+/, '')
        .slice(0, LONGEST_NAME) || id
    let file = ''
    for (let number = 1; file === ''; number += 1) {
      const name = `${directory}/${safe}${number === 1 ? '' : `-${number}`}.${extension}`
      if (this.#isMade(name)) file = name
    }
    this.#named.set(`${directory} ${id}`, file)
    return file
  }

  /** Creates a file; returns false if it is there already. After a failure to write, nothing is created. */
  #isMade(name: string): boolean {
    if (this.#failure !== null) return true
    try {
      const path = join(this.path, name)
      mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
      closeSync(openSync(path, 'wx', 0o600))
      return true
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false
      this.#failure ??= messageOf(error)
      return true
    }
  }

  /**
   * Finishes the report: writes what is left and calls `work`, one run after the other. Afterwards this run writes no more.
   *
   * @returns what `work` returns
   * @throws what `work` throws
   */
  async finish<Result>(work: () => Promise<Result>): Promise<Result> {
    this.flush()
    await this.#takeLock()
    try {
      return await work()
    } finally {
      for (const name of [this.#mark, LOCK]) rmSync(join(this.path, MARKS, name), { force: true })
    }
  }

  /** Removes the directory, unless another run writes to it. */
  discard(): void {
    rmSync(join(this.path, MARKS, this.#mark), { force: true })
    if (runsOf(this.path).length === 0) rmSync(this.path, { recursive: true, force: true })
  }

  async #takeLock(): Promise<void> {
    const lock = join(this.path, MARKS, LOCK)
    const until = performance.now() + LOCK_MS.most
    for (;;) {
      try {
        writeFileSync(lock, this.#mark, { flag: 'wx' })
        return
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error
      }
      const holder = parseMark(readFileSync(lock, 'utf8'))
      const isOver = holder !== null && isAlive(holder) === false
      if (isOver || performance.now() > until) rmSync(lock, { force: true })
      else await Bun.sleep(LOCK_MS.poll)
    }
  }
}

/** Longest name of a file, without its ending. @bound client */
const LONGEST_NAME = 100

/** Reports whether berth made a directory as a report. */
export const isReport = (path: string): boolean =>
  statSync(join(path, MARKS), { throwIfNoEntry: false })?.isDirectory() === true

/** Reports whether a run still writes to a report. */
export const isBeingWritten = (path: string): boolean => runsOf(path).length > 0

/** Returns the marks of runs that write to a report. */
function runsOf(path: string): string[] {
  return namesIn(join(path, MARKS)).filter((name) => {
    const mark = parseMark(name)
    // One of another PID namespace cannot be seen from here.
    return mark !== null && isAlive(mark) !== false
  })
}

/** Removes what an older report left. Files of others stay. */
function clear(path: string): void {
  for (const name of Object.values(REPORT)) rmSync(join(path, name), { recursive: true, force: true })
  for (const name of namesIn(join(path, MARKS))) {
    const mark = parseMark(name)
    if (mark === null || isAlive(mark) === false) rmSync(join(path, MARKS, name), { force: true })
  }
}

function appendLines(path: string, text: string): void {
  mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
  const file = openSync(path, 'a', 0o600)
  try {
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
  } finally {
    closeSync(file)
  }
}
