import type { AgentEvent, ToolData } from '../../agents/agents.ts'
import { count, formatBytes, paint, type Style } from '../output.ts'
import { PlainTextStream, toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import { numberField, stringField, type TranscriptItem } from './transcript.ts'

/** A tool call in progress. */
interface ToolCall {
  tool: string
  /** Undefined as long as the call's beginning is unknown, because the transcript began later. */
  head: string | undefined
  stdout: IncrementalText
  stderr: IncrementalText
}

/** Marks of final statuses. */
const STATUS_MARKS = {
  completed: ['✓', 'green'],
  failed: ['✗', 'red'],
  cancelled: ['■', 'yellow'],
} as const satisfies Record<string, readonly [string, Style]>

/** Shows a transcript to a person: the agent's actions, with the output of its commands as it arrives. */
export class TranscriptView {
  readonly #out: OutputStream
  readonly #lines: LineWriter
  readonly #calls = new Map<string, ToolCall>()
  #currentMessage: IncrementalText | null = null
  #usage: Extract<AgentEvent, { type: 'usage' }> | null = null
  #typed: string | null = null
  #lastText = ''

  constructor(out: OutputStream) {
    this.#out = out
    this.#lines = new LineWriter(out)
  }

  /** The agent's last message, unchanged. */
  get lastMessage(): string {
    return this.#lastText
  }

  /** Remembers an answer typed here, whose event is then not shown. */
  noteTyped(answer: string): void {
    this.#typed = answer
  }

  /** Shows the next item. */
  async show(item: TranscriptItem): Promise<void> {
    switch (item.type) {
      case 'output':
        return this.#call(item.call)[item.stream].append(item.offset, item.text)
      case 'text':
        return this.#message().append(item.offset, item.text)
      case 'message':
        await this.#message().complete(item.text, false)
        this.#currentMessage = null
        this.#lastText = item.text
        return
      case 'toolCall': {
        const head = headline(item.tool, item.input)
        Object.assign(this.#call(item.call), { tool: item.tool, head })
        return this.#lines.add(`head ${item.call}`, this.#headText(item.tool, head))
      }
      case 'toolResult':
        return this.#result(item)
      case 'terminal':
        return this.#lines.line(this.#inGutter(toPlainText(item.text).replace(/\n$/, '')))
      case 'question':
        return this.#lines.line(this.#block('?', item.question, 'yellow'))
      case 'answer': {
        const typed = this.#typed
        this.#typed = null
        if (typed !== item.answer) await this.#lines.line(this.#block('>', item.answer, 'cyan'))
        return
      }
      case 'notice':
        return this.#lines.line(this.#block('·', item.text, 'dim'))
      case 'usage':
        this.#usage = item
        return
      case 'status':
        return this.#status(item)
    }
  }

  /** Ends an unfinished line. */
  end(): Promise<void> {
    return this.#lines.end()
  }

  async #result({ call, tool, ok, output }: Extract<AgentEvent, { type: 'toolResult' }>): Promise<void> {
    const { head, stdout, stderr } = this.#call(call)
    const writer = `head ${call}`
    this.#calls.delete(call)
    if (tool === 'run') {
      const isCut = output.truncated === true
      await stdout.complete(stringField(output, 'stdout') ?? '', isCut)
      await stderr.complete(stringField(output, 'stderr') ?? '', isCut)
    }
    const message = ok ? (tool === 'run' ? '' : outcome(tool, output)) : failure(output)
    const shown = ok ? paint(this.#out, 'dim', message) : this.#block('✗', message, 'red')
    if (this.#lines.isOpen(writer)) return this.#lines.add(writer, message === '' ? '\n' : `  ${shown}\n`)
    if (message === '') return
    const of = tool === 'run' || head === undefined ? '' : `${this.#headText(tool, head)}  `
    await this.#lines.line(of === '' ? `  ${shown}` : of + shown)
  }

  async #status(event: Extract<TranscriptItem, { type: 'status' }>): Promise<void> {
    const { status, result } = event
    if (status === 'running' || status === 'awaiting_input') return
    if (this.#usage) await this.#lines.line(paint(this.#out, 'dim', usageText(this.#usage)))
    const [mark, style] = STATUS_MARKS[status]
    const why = status === 'failed' && result !== undefined ? `failed: ${result}` : status
    await this.#lines.line(this.#block(mark, why, style))
  }

  #call(id: string): ToolCall {
    const known = this.#calls.get(id)
    if (known) return known
    const output = (stream: string) => new IncrementalText(this.#lines, `${id} ${stream}`, this.#gutter)
    const call = { tool: '', head: undefined, stdout: output('stdout'), stderr: output('stderr') }
    this.#calls.set(id, call)
    return call
  }

  #message(): IncrementalText {
    this.#currentMessage ??= new IncrementalText(this.#lines, 'message', '')
    return this.#currentMessage
  }

  get #gutter(): string {
    return `  ${paint(this.#out, 'dim', '│')} `
  }

  #inGutter(text: string): string {
    return text
      .split('\n')
      .map((line) => this.#gutter + line)
      .join('\n')
  }

  /** Returns a headline. Only that of a command ends its line, because output follows. */
  #headText(tool: string, head: string): string {
    const [first = '', ...more] = head.split('\n')
    const lines = [paint(this.#out, 'bold', first), ...more.map((line) => `    ${line}`)]
    return `${paint(this.#out, 'cyan', '▸')} ${lines.join('\n')}${tool === 'run' ? '\n' : ''}`
  }

  /** Returns a text after a mark, its further lines indented. */
  #block(mark: string, text: string, style: Style): string {
    const [first = '', ...more] = toPlainText(text).trimEnd().split('\n')
    return [`${paint(this.#out, style, mark)} ${first}`, ...more.map((line) => `  ${line}`)].join('\n')
  }
}

function usageText({ inputTokens, outputTokens, cost }: Extract<AgentEvent, { type: 'usage' }>): string {
  const tokens = `${inputTokens.toLocaleString('en')} tokens read, ${outputTokens.toLocaleString('en')} written`
  return cost === undefined ? tokens : `${tokens}, $${cost.toFixed(4)}`
}

/** Describes a tool call in one line. A command may have several. */
function headline(tool: string, input: ToolData): string {
  const directory = stringField(input, 'path') ?? ''
  if (tool === 'run') {
    const cwd = stringField(input, 'cwd')
    return toPlainText(`$ ${stringField(input, 'command') ?? ''}${cwd ? `  (in ${cwd})` : ''}`)
  }
  if (tool === 'write' || tool === 'read') return oneLine(`${tool} ${directory}`)
  if (tool === 'list') return oneLine(`list ${directory || '.'}`)
  if (tool === 'search')
    return oneLine(`search ${stringField(input, 'pattern') ?? ''}${directory ? ` in ${directory}` : ''}`)
  return oneLine(`${tool} ${JSON.stringify(input)}`)
}

/** Describes the result of a successful call, after the headline; empty for none. */
function outcome(tool: string, output: ToolData): string {
  const [bytes, files, matches] = ['bytes', 'files', 'matches'].map((name) => numberField(output, name))
  if (tool === 'write' || tool === 'read') return bytes === undefined ? '' : formatBytes(bytes)
  if (tool === 'list') return files === undefined ? '' : count(files, 'file')
  if (tool === 'search')
    return matches === undefined ? '' : `${matches} ${matches === 1 ? 'match' : 'matches'}`
  return Object.keys(output).length === 0 ? '' : oneLine(JSON.stringify(output))
}

/** Describes the failure of a call. */
function failure(output: ToolData): string {
  const error = stringField(output, 'error')
  if (error !== undefined) return toPlainText(error)
  if (output.timedOut === true) return 'ran out of time and was ended'
  const code = numberField(output, 'exitCode')
  return code === undefined ? oneLine(JSON.stringify(output)) : `exit code ${code}`
}

const oneLine = (text: string): string => toPlainText(text).replaceAll('\n', '�')

/** Characters remembered from the end of the shown text, to find it in the complete one. */
const REMEMBERED = 256

/** Shows a text that arrives first in pieces and then complete, without repeating any part. */
class IncrementalText {
  readonly #lines: LineWriter
  readonly #writer: string
  readonly #gutter: string
  readonly #text = new PlainTextStream()
  /** Number of characters shown or skipped. */
  #shown = 0
  /** The end of the shown text. */
  #end = ''

  constructor(lines: LineWriter, writer: string, gutter: string) {
    this.#lines = lines
    this.#writer = writer
    this.#gutter = gutter
  }

  /** Shows a piece that begins at `offset` characters. */
  async append(offset: number, text: string): Promise<void> {
    const missing = offset - this.#shown
    if (missing > 0) {
      this.#shown = offset
      await this.#note(`${missing} characters that came before are not shown`)
    }
    await this.#add(text.slice(this.#shown - offset))
  }

  /**
   * Shows the rest of the complete text, and ends its line.
   *
   * @param isCut whether its middle was omitted
   */
  async complete(text: string, isCut: boolean): Promise<void> {
    if (isCut && this.#shown > 0) await this.#endOf(text)
    else if (text.slice(0, this.#shown).endsWith(this.#end)) await this.#add(text.slice(this.#shown))
    else if (text.trim() !== '' && !text.endsWith(this.#end.trim())) {
      // The final text differs from the pieces.
      await this.#lines.end()
      await this.#add(text)
    }
    await this.#lines.add(this.#writer, this.#text.end(), this.#gutter)
    if (this.#lines.isOpen(this.#writer)) await this.#lines.end()
  }

  async #endOf(text: string): Promise<void> {
    if (text.endsWith(this.#end)) return
    await this.#note('not all of it is shown; its end:')
    // A cut text consists of its beginning, a line about the omission, and its end, of equal length.
    const end = text.slice(Math.ceil(text.length / 2))
    await this.#add(end.slice(end.indexOf('\n') + 1))
  }

  async #add(text: string): Promise<void> {
    if (text === '') return
    this.#shown += text.length
    this.#end = (this.#end + text).slice(-REMEMBERED)
    await this.#lines.add(this.#writer, this.#text.push(text), this.#gutter)
  }

  #note(text: string): Promise<void> {
    return this.#lines.add(`${this.#writer} note`, toPlainText(`… ${text}\n`), this.#gutter)
  }
}

/** Writes lines of several writers to one terminal. Ends the unfinished line of one before another continues. */
class LineWriter {
  readonly #out: OutputStream
  /** The writer of the unfinished line. */
  #open: string | null = null

  constructor(out: OutputStream) {
    this.#out = out
  }

  /** Reports whether this writer's line is unfinished. */
  isOpen(writer: string): boolean {
    return this.#open === writer
  }

  /** Writes more of a writer's text. Each of its lines begins with `gutter`. */
  async add(writer: string, text: string, gutter = ''): Promise<void> {
    if (text === '') return
    const isOpen = this.#open === writer
    const isWhole = text.endsWith('\n')
    const lines = (isWhole ? text.slice(0, -1) : text).split('\n')
    const shown = lines.map((line, index) => (index === 0 && isOpen ? line : gutter + line)).join('\n')
    const before = this.#open === null || isOpen ? '' : '\n'
    this.#open = isWhole ? null : writer
    await this.#out.write(before + shown + (isWhole ? '\n' : ''))
  }

  /** Writes one or more complete lines. */
  line(text: string): Promise<void> {
    return this.add('', `${text}\n`)
  }

  /** Ends the unfinished line. */
  async end(): Promise<void> {
    if (this.#open === null) return
    this.#open = null
    await this.#out.write('\n')
  }
}
