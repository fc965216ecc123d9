import type { AgentEvent, ToolData } from '../../agents/events.ts'
import { count, formatBytes, paint, type Style } from '../output.ts'
import { plain } from '../plain-text.ts'
import type { Sink } from '../terminal.ts'
import { Lines } from './lines.ts'
import { Output } from './output.ts'
import { numberIn, type TranscriptItem, textIn } from './transcript.ts'

/** How the ends of tasks are marked. */
const ENDS = {
  completed: ['✓', 'green'],
  failed: ['✗', 'red'],
  cancelled: ['■', 'yellow'],
} as const satisfies Record<string, readonly [string, Style]>

/** A tool that is being used. */
interface Call {
  tool: string
  /** Not there while nothing is known of it, as where its beginning was left out. */
  head: string | undefined
  stdout: Output
  stderr: Output
}

/** Shows a transcript to a person: what the agent does, with what its commands print as it comes. */
export class TranscriptView {
  readonly #sink: Sink
  readonly #lines: Lines
  readonly #calls = new Map<string, Call>()
  #saying: Output | null = null
  #usage: Extract<AgentEvent, { type: 'usage' }> | null = null
  #typed: string | null = null
  #said = ''

  constructor(sink: Sink) {
    this.#sink = sink
    this.#lines = new Lines(sink)
  }

  /** What the agent said last, as it was. */
  get lastMessage(): string {
    return this.#said
  }

  /** Remembers an answer that was typed here: its event shows nothing new. */
  hasTyped(answer: string): void {
    this.#typed = answer
  }

  /** Shows what comes next. */
  async show(item: TranscriptItem): Promise<void> {
    switch (item.type) {
      case 'output':
        return this.#call(item.call)[item.stream].piece(item.offset, item.text)
      case 'text':
        return this.#message().piece(item.offset, item.text)
      case 'message':
        await this.#message().whole(item.text, false)
        this.#saying = null
        this.#said = item.text
        return
      case 'toolCall': {
        const head = headline(item.tool, item.input)
        Object.assign(this.#call(item.call), { tool: item.tool, head })
        return this.#lines.add(`head ${item.call}`, this.#headText(item.tool, head))
      }
      case 'toolResult':
        return this.#result(item)
      case 'terminal':
        return this.#lines.line(this.#inGutter(plain(item.text).replace(/\n$/, '')))
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

  /** Ends a line that has no end yet. */
  end(): Promise<void> {
    return this.#lines.end()
  }

  async #result({ call, tool, ok, output }: Extract<AgentEvent, { type: 'toolResult' }>): Promise<void> {
    const { head, stdout, stderr } = this.#call(call)
    const writer = `head ${call}`
    this.#calls.delete(call)
    if (tool === 'run') {
      const isCut = output.truncated === true
      await stdout.whole(textIn(output, 'stdout') ?? '', isCut)
      await stderr.whole(textIn(output, 'stderr') ?? '', isCut)
    }
    const said = ok ? (tool === 'run' ? '' : outcome(tool, output)) : failure(output)
    const shown = ok ? paint(this.#sink, 'dim', said) : this.#block('✗', said, 'red')
    if (this.#lines.isOpen(writer)) return this.#lines.add(writer, said === '' ? '\n' : `  ${shown}\n`)
    if (said === '') return
    const of = tool === 'run' || head === undefined ? '' : `${this.#headText(tool, head)}  `
    await this.#lines.line(of === '' ? `  ${shown}` : of + shown)
  }

  async #status(event: Extract<TranscriptItem, { type: 'status' }>): Promise<void> {
    const { status, result } = event
    if (status === 'running' || status === 'awaiting_input') return
    if (this.#usage) await this.#lines.line(paint(this.#sink, 'dim', usageText(this.#usage)))
    const [mark, style] = ENDS[status]
    const why = status === 'failed' && result !== undefined ? `failed: ${result}` : status
    await this.#lines.line(this.#block(mark, why, style))
  }

  #call(id: string): Call {
    const known = this.#calls.get(id)
    if (known) return known
    const output = (stream: string) => new Output(this.#lines, `${id} ${stream}`, this.#gutter)
    const call = { tool: '', head: undefined, stdout: output('stdout'), stderr: output('stderr') }
    this.#calls.set(id, call)
    return call
  }

  #message(): Output {
    this.#saying ??= new Output(this.#lines, 'message', '')
    return this.#saying
  }

  get #gutter(): string {
    return `  ${paint(this.#sink, 'dim', '│')} `
  }

  #inGutter(text: string): string {
    return text
      .split('\n')
      .map((line) => this.#gutter + line)
      .join('\n')
  }

  /** A headline; that of a command ends its line, since its output follows. */
  #headText(tool: string, head: string): string {
    const [first = '', ...more] = head.split('\n')
    const lines = [paint(this.#sink, 'bold', first), ...more.map((line) => `    ${line}`)]
    return `${paint(this.#sink, 'cyan', '▸')} ${lines.join('\n')}${tool === 'run' ? '\n' : ''}`
  }

  /** A text behind a mark, its further lines below its first. */
  #block(mark: string, text: string, style: Style): string {
    const [first = '', ...more] = plain(text).trimEnd().split('\n')
    return [`${paint(this.#sink, style, mark)} ${first}`, ...more.map((line) => `  ${line}`)].join('\n')
  }
}

function usageText({ inputTokens, outputTokens, cost }: Extract<AgentEvent, { type: 'usage' }>): string {
  const tokens = `${inputTokens.toLocaleString('en')} tokens read, ${outputTokens.toLocaleString('en')} written`
  return cost === undefined ? tokens : `${tokens}, $${cost.toFixed(4)}`
}

/** What an agent does with a tool, in a line; a command may have several. */
function headline(tool: string, input: ToolData): string {
  const directory = textIn(input, 'path') ?? ''
  if (tool === 'run') {
    const cwd = textIn(input, 'cwd')
    return plain(`$ ${textIn(input, 'command') ?? ''}${cwd ? `  (in ${cwd})` : ''}`)
  }
  if (tool === 'write' || tool === 'read') return oneLine(`${tool} ${directory}`)
  if (tool === 'list') return oneLine(`list ${directory || '.'}`)
  if (tool === 'search')
    return oneLine(`search ${textIn(input, 'pattern') ?? ''}${directory ? ` in ${directory}` : ''}`)
  return oneLine(`${tool} ${JSON.stringify(input)}`)
}

/** What came of it where it went well, behind the headline; empty where there is nothing to say. */
function outcome(tool: string, output: ToolData): string {
  const [bytes, files, matches] = ['bytes', 'files', 'matches'].map((name) => numberIn(output, name))
  if (tool === 'write' || tool === 'read') return bytes === undefined ? '' : formatBytes(bytes)
  if (tool === 'list') return files === undefined ? '' : count(files, 'file')
  if (tool === 'search')
    return matches === undefined ? '' : `${matches} ${matches === 1 ? 'match' : 'matches'}`
  return Object.keys(output).length === 0 ? '' : oneLine(JSON.stringify(output))
}

/** Why it did not go well. */
function failure(output: ToolData): string {
  const error = textIn(output, 'error')
  if (error !== undefined) return plain(error)
  if (output.timedOut === true) return 'ran out of time and was ended'
  const code = numberIn(output, 'exitCode')
  return code === undefined ? oneLine(JSON.stringify(output)) : `exit code ${code}`
}

const oneLine = (text: string): string => plain(text).replaceAll('\n', '�')
