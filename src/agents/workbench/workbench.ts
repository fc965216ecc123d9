/** What an agent does on a server: runs commands, reads, writes and searches files. Each is reported as an event. */
import {
  type CommandOwner,
  ComputeError,
  describeRefusal,
  RefusalCollector,
  type Sandbox,
} from '../../compute/sandbox.ts'
import { type Workspace, WorkspaceError } from '../../compute/workspace.ts'
import { messageOf } from '../../runtime/error-info.ts'
import type { Masks } from '../../runtime/masks.ts'
import type { PrintedFields } from '../../runtime/printed.ts'
import { onAbort } from '../../runtime/wait.ts'
import type { AgentEvent, OutputDelta, ToolData } from '../events.ts'
import { CommandOutput } from './output.ts'
import { type Match, searchFiles, ToolError } from './search.ts'

/** Default milliseconds that a command may take. */
const COMMAND_TIMEOUT_MS = 10 * 60_000

/** Most bytes of a file that are read. @bound program */
const MAX_READ = 256 * 1024

/** Most characters of a file's text in the transcript. @bound reader */
const MAX_SHOWN = 4_000

/** Most lines that a difference adds and removes, in all. @bound reader */
const MAX_EDITS = 2_000

/** Most characters of a line in a search's result. @bound reader */
const MAX_LINE = 400

/** Most paths in a list. @bound reader */
const MAX_LISTED = 2_000

/** The options of a `Workbench`. */
interface WorkbenchOptions {
  /** The task or build that it is for. */
  owner: CommandOwner
  sandbox: Sandbox
  workspace: Workspace
  /** Returns the server's own variables. */
  environment(): Readonly<Record<string, string>>
  /** Hides secrets in transcripts. The provider of the environment adds the environment's values. */
  masks: Masks
  report(event: AgentEvent): void
  addDelta(delta: OutputDelta): void
  signal: AbortSignal
  /** Called when the workspace has changed. */
  onChange?(): void
}

/** A command's end and its output, shortened in the middle if it is long. */
interface CommandResult extends PrintedFields {
  readonly exitCode: number
  readonly timedOut: boolean
  readonly truncated: boolean
  /** Connections of the server that berth refused meanwhile; missing if there were none. */
  readonly refused?: readonly string[]
}

/** The tools with which an agent works on a server. Reports each use and its result. */
export class Workbench {
  readonly #options: WorkbenchOptions
  #calls = 0

  constructor(parts: WorkbenchOptions) {
    this.#options = parts
  }

  /**
   * Runs a shell command in the workspace, as `exec` does, with the server's own variables. Masks secrets in its
   * output, which may go to a remote model.
   *
   * @throws ToolError if it cannot be started, ComputeError if the server is gone, or the signal's reason
   */
  run(command: string, options: { timeoutMs?: number; cwd?: string } = {}): Promise<CommandResult> {
    const { timeoutMs = COMMAND_TIMEOUT_MS, cwd = '' } = options
    const input = { command, ...(cwd === '' ? {} : { cwd }) }
    return this.#runTool('run', input, async (call) => {
      const result = await this.#run(call, command, cwd, timeoutMs)
      return { ok: result.exitCode === 0, output: { ...result }, value: result }
    })
  }

  /** Returns the text of a file, of a large one the beginning. @throws ToolError */
  read(path: string): Promise<{ content: string; truncated: boolean }> {
    return this.#runTool('read', { path }, async () => {
      using file = await this.#options.workspace.open(path)
      const bytes = await file.read(0, MAX_READ)
      const truncated = file.size > bytes.length
      let content: string
      try {
        content = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: truncated })
      } catch {
        throw new ToolError(`${path} is not text.`)
      }
      const shown = this.#options.masks.beginning(content, MAX_SHOWN)
      const isCut = truncated || content.length > MAX_SHOWN
      return {
        ok: true,
        output: { content: shown, bytes: file.size, truncated: isCut },
        value: { content, truncated },
      }
    })
  }

  /**
   * Creates or replaces a file, and creates missing parent directories. The report has what changed in a text.
   *
   * @throws ToolError
   */
  write(path: string, content: string): Promise<void> {
    const shown = this.#options.masks.beginning(content, MAX_SHOWN)
    const isCut = content.length > MAX_SHOWN
    const input = { path, content: shown, ...(isCut ? { truncated: true } : {}) }
    return this.#runTool('write', input, async () => {
      const bytes = new TextEncoder().encode(content)
      const before = await this.#textBefore(path)
      await this.#options.workspace.write(path, bytes)
      this.#options.onChange?.()
      const diff = before === null ? undefined : await this.#diffOf(path, before, content)
      return { ok: true, output: { bytes: bytes.length, ...(diff && { diff }) }, value: undefined }
    })
  }

  /** Returns the text of a file that is to be replaced; null if there is none, or it is long or not text. */
  async #textBefore(path: string): Promise<string | null> {
    try {
      using file = await this.#options.workspace.open(path)
      if (file.size > MAX_READ) return null
      return new TextDecoder('utf-8', { fatal: true }).decode(await file.read(0, MAX_READ))
    } catch {
      // The write that follows reports what keeps it from the file.
      return null
    }
  }

  /** Returns the changed lines of a text with those around them, as `diff -u` prints them; empty without a change. */
  async #diffOf(path: string, before: string, after: string): Promise<string> {
    if (before === after || after.length > MAX_READ) return ''
    const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff')
    const { masks } = this.#options
    // A text that is wholly another would take minutes to compare.
    const patch = createTwoFilesPatch(path, path, masks.mask(before), masks.mask(after), '', '', {
      maxEditLength: MAX_EDITS,
      headerOptions: FILE_HEADERS_ONLY,
    })
    return patch === undefined ? '' : masks.beginning(patch, MAX_SHOWN)
  }

  /**
   * Returns paths of the files in a directory and those in it, `.git` and `node_modules` left out.
   *
   * @throws ToolError
   */
  list(dir = ''): Promise<{ files: string[]; truncated: boolean }> {
    return this.#runTool('list', { path: dir }, async () => {
      const all = await this.#listFiles(dir)
      const files = all.slice(0, MAX_LISTED)
      const truncated = files.length < all.length
      return { ok: true, output: { files: files.length, truncated }, value: { files, truncated } }
    })
  }

  /**
   * Returns the lines of text files that a regular expression (POSIX, extended) matches; they may go to a model
   * elsewhere, so secrets are masked in them.
   *
   * @throws ToolError, also for an invalid expression
   */
  search(pattern: string, dir = ''): Promise<{ matches: Match[]; truncated: boolean }> {
    return this.#runTool('search', { pattern, path: dir }, async () => {
      const { sandbox, masks, signal } = this.#options
      const path = normalizeDir(dir)
      const kind = path === '' ? 'directory' : (await this.#options.workspace.stat(path))?.kind
      // A pipe would keep the search waiting, and a link lead out of the workspace.
      if (kind !== 'directory' && kind !== 'file')
        throw new ToolError(`There is no file or directory ${JSON.stringify(dir)} in the workspace.`)
      const found = await searchFiles({ sandbox, pattern, dir: path, signal })
      const matches = found.matches.map((match) => ({
        ...match,
        text: masks.beginning(match.text, MAX_LINE),
      }))
      const { truncated } = found
      return { ok: true, output: { matches: matches.length, truncated }, value: { matches, truncated } }
    })
  }

  async #listFiles(dir: string): Promise<string[]> {
    const prefix = normalizeDir(dir)
    const all = await this.#options.workspace.list({ all: false })
    if (prefix === '') return all
    const inside = all.filter((path) => path.startsWith(`${prefix}/`))
    if (inside.length > 0) return inside
    const entry = await this.#options.workspace.stat(prefix)
    if (entry?.kind === 'directory') return []
    throw new ToolError(`There is no directory ${JSON.stringify(dir)}.`)
  }

  /**
   * Returns a working directory as commands take it: inside the workspace, in the isolations too that would let one
   * out.
   */
  async #workingDirectory(cwd: string): Promise<string> {
    const dir = normalizeDir(cwd)
    if (dir === '') return ''
    const entry = await this.#options.workspace.stat(dir)
    if (entry?.kind === 'directory') return dir
    throw new ToolError(`There is no directory ${JSON.stringify(cwd)} in the workspace.`)
  }

  async #run(call: string, command: string, cwd: string, timeoutMs: number): Promise<CommandResult> {
    const { owner, sandbox, environment, masks, addDelta, signal } = this.#options
    if (command.includes('\0')) throw new ToolError('A command cannot hold a NUL character.')
    const dir = await this.#workingDirectory(cwd)
    const env = { ...environment() }
    const output = new CommandOutput(masks, (stream, text) =>
      addDelta({ type: 'output', call, stream, text }),
    )
    const execution = sandbox.exec({
      command,
      cwd: dir,
      env,
      timeoutMs,
      owner,
      onOutput: (stream, data) => output.write(stream, data),
    })
    using refusals = new RefusalCollector(sandbox.outboundControl)
    using _abort = onAbort(signal, () => execution.cancel())
    try {
      const { exitCode, timedOut } = await execution.exit
      signal.throwIfAborted()
      const refused = (await refusals.end(exitCode !== 0)).map(describeRefusal)
      const result = { ...output.end(), exitCode, timedOut, truncated: output.truncated }
      return refused.length === 0 ? result : { ...result, refused }
    } catch (error) {
      // The agent may continue if a command cannot be started, for example for lack of processes.
      if (error instanceof ComputeError && !sandbox.ending) throw new ToolError(error.message)
      throw error
    } finally {
      this.#options.onChange?.()
    }
  }

  /** Runs a tool, and reports the call and its result. */
  async #runTool<T>(
    tool: string,
    input: ToolData,
    work: (call: string) => Promise<{ ok: boolean; output: ToolData; value: T }>,
  ): Promise<T> {
    const { signal, report } = this.#options
    signal.throwIfAborted()
    this.#calls += 1
    const call = `call_${this.#calls}`
    report({ type: 'toolCall', call, tool, input })
    try {
      const { ok, output, value } = await work(call)
      report({ type: 'toolResult', call, tool, ok, output })
      return value
    } catch (error) {
      if (signal.aborted) throw signal.reason
      const reported = error instanceof WorkspaceError ? new ToolError(error.message) : error
      const message = messageOf(reported)
      report({ type: 'toolResult', call, tool, ok: false, output: { error: message } })
      throw reported
    }
  }
}

/**
 * Returns a directory as paths of the list begin: relative, without `./` and a slash at the end; empty for the
 * workspace.
 */
const normalizeDir = (dir: string): string =>
  dir.replace(/^\/workspace(?:\/|$)|^\.(?:\/|$)/, '').replace(/(?<=.)\/+$/, '')
