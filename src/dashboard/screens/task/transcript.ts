import { type Signal, signal } from '@preact/signals'
import type { StreamEventOf } from '../../../route-client/client.ts'
import { type ApiClient, followUntilEnd } from '../../api/client.ts'
import type { Task } from '../../store/store.ts'

/** An event of a task's stream: a kept one, or a piece of live output. */
export type TranscriptMessage = StreamEventOf<'tasks.events'>['data']

/** A use of a tool, with its output so far. */
export interface ToolUse {
  readonly kind: 'tool'
  readonly key: string
  /** When it began, in milliseconds since 1970. */
  readonly at: number
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
  readonly stdout: string
  readonly stderr: string
  /** Null while it runs. */
  readonly result: { readonly ok: boolean; readonly output: Readonly<Record<string, unknown>> } | null
}

/** Something that was said or noted. */
export interface Said {
  readonly kind: 'message' | 'question' | 'answer' | 'notice' | 'terminal' | 'status'
  readonly key: string
  /** When it was said, in milliseconds since 1970; null while it is being said. */
  readonly at: number | null
  readonly text: string
  /** Whether it is the result of a task that failed. */
  readonly isFailure?: boolean
}

/** An entry of the conversation with an agent. */
export type TranscriptEntry = ToolUse | Said

/** What a model has read and written. */
export interface ModelUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cost?: number | undefined
}

/** The key of a message of which only pieces have arrived. */
const DRAFT = 'draft'

/** Returns what a command printed, standard output first. */
const printedBy = ({ result }: ToolUse): string =>
  `${result?.output.stdout ?? ''}${result?.output.stderr ?? ''}`

/** Returns the connections that berth refused while a command ran, as sentences. */
export function refusedOf({ result }: ToolUse): readonly string[] {
  const refused = result?.output.refused
  return Array.isArray(refused) ? refused.filter((one) => typeof one === 'string') : []
}

/** The conversation with an agent, put together from the events of its task. */
export class TaskTranscript {
  readonly entries: Signal<readonly TranscriptEntry[]> = signal([])
  readonly usage: Signal<ModelUsage | null> = signal(null)
  /** The `seq` of the last event that is kept. */
  #last = 0

  /** Where a stream that is opened again has to go on. */
  get last(): number {
    return this.#last
  }

  /** Adds the next item of the stream. */
  add(item: TranscriptMessage): void {
    if ('seq' in item) {
      if (item.seq <= this.#last) return
      this.#last = item.seq
    }
    switch (item.type) {
      case 'output':
        this.#update(item.call, (use) => ({
          ...use,
          [item.stream]: `${use[item.stream].slice(0, item.offset)}${item.text}`,
        }))
        break
      case 'text':
        this.#put({
          kind: 'message',
          key: DRAFT,
          at: null,
          text: `${this.#textOf(DRAFT).slice(0, item.offset)}${item.text}`,
        })
        break
      case 'message':
        this.entries.value = this.entries.peek().filter(({ key }) => key !== DRAFT)
        this.#say('message', item)
        break
      case 'toolCall':
        this.#put({
          kind: 'tool',
          key: item.call,
          at: Date.parse(item.at),
          tool: item.tool,
          input: item.input,
          stdout: '',
          stderr: '',
          result: null,
        })
        break
      case 'toolResult':
        this.#update(item.call, (use) => ({ ...use, result: { ok: item.ok, output: item.output } }))
        break
      case 'usage':
        this.usage.value = item
        break
      case 'status':
        // The others are shown at the top of the page.
        if (item.result !== undefined && item.status === 'failed') this.#sayFailure(item, item.result)
        else if (item.result !== undefined) this.#say('status', { ...item, text: item.result })
        break
      case 'question':
        this.#say('question', { ...item, text: item.question })
        break
      case 'answer':
        this.#say('answer', { ...item, text: item.answer })
        break
      case 'terminal':
      case 'notice':
        this.#say(item.type, item)
    }
  }

  /** Adds why it failed, without what its command shows: its output, and refused connections. */
  #sayFailure({ seq, at }: { seq: number; at: string }, result: string): void {
    const uses = this.entries.peek().filter((entry) => entry.kind === 'tool')
    const refused = new Set(uses.flatMap(refusedOf))
    const [sentence = '', ...more] = result.split('\n').filter((line) => !refused.has(line))
    const printed = more.join('\n').trim()
    const isRepeated = printed === '' || uses.some((use) => printedBy(use).includes(printed))
    const text = isRepeated ? sentence.replace(/:$/, '.') : `${sentence}\n${printed}`
    this.#put({ kind: 'status', key: String(seq), at: Date.parse(at), text, isFailure: true })
  }

  #say(kind: Said['kind'], { seq, at, text }: { seq: number; at: string; text: string }): void {
    this.#put({ kind, key: String(seq), at: Date.parse(at), text })
  }

  #textOf(key: string): string {
    const found = this.entries.peek().find((entry) => entry.key === key)
    return found && found.kind !== 'tool' ? found.text : ''
  }

  #put(entry: TranscriptEntry): void {
    const entries = this.entries.peek()
    const at = entries.findIndex(({ key }) => key === entry.key)
    this.entries.value = at === -1 ? [...entries, entry] : entries.with(at, entry)
  }

  #update(key: string, change: (use: ToolUse) => ToolUse): void {
    this.entries.value = this.entries
      .peek()
      .map((entry) => (entry.kind === 'tool' && entry.key === key ? change(entry) : entry))
  }
}

/**
 * Reads the transcript of a task, and follows it until the task ends.
 *
 * @param onFailure called with why it cannot be read at present, and with null when it can
 * @returns a function that ends it
 */
export const followTranscript = (
  api: ApiClient,
  { id: taskId, serverId }: Pick<Task, 'id' | 'serverId'>,
  transcript: TaskTranscript,
  onFailure: (why: string | null) => void,
): (() => void) =>
  followUntilEnd(async (signal) => {
    const query = { after: transcript.last }
    for await (const { data } of api.stream('tasks.events', {
      params: { serverId, taskId },
      query,
      signal,
    })) {
      transcript.add(data)
      onFailure(null)
    }
  }, onFailure)
