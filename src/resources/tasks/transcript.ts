import type { AgentEvent, OutputDelta } from '../../agents/agents.ts'
import { firstCharacters } from '../../runtime/characters.ts'
import { exactBytes, exactText } from '../../runtime/exact-text.ts'
import type { MaskStream, Masks } from '../../runtime/masks.ts'
import type { TaskEvent } from './model.ts'
import type { TaskRecords } from './records.ts'
import type { TranscriptEvent } from './transcript-event.ts'

/** A piece of output with its position, as listeners receive it. */
export type PositionedDelta = OutputDelta & {
  /** The number of characters of the same output or message before it. */
  readonly offset: number
}

/**
 * Most stored events of a task. Further reports of the agent are dropped; the task's own events are kept.
 * @bound program
 */
const MAX_EVENTS = 20_000

/** Most stored characters of one task, as JSON. @bound program */
const MAX_CHARACTERS = 32 * 1024 * 1024

/** Most characters of one text of an event. @bound program */
const MAX_TEXT = 256 * 1024

/** Most characters of pending output that a new listener receives. @bound program */
const MAX_PENDING = 64 * 1024

/** Fields that identify an event. They are not masked, even if a secret has the same text. */
const UNMASKED_FIELDS: ReadonlySet<string> = new Set(['type', 'status', 'call', 'tool', 'ok'])

/** Fields with output that is not UTF-8, as base64. */
const EXACT_FIELDS: ReadonlySet<string> = new Set(['stdoutBase64', 'stderrBase64'])

/** Receives stored events and deltas, in order. */
export interface TranscriptListener {
  event(event: TaskEvent): void
  delta(delta: PositionedDelta): void
  /**
   * Called at the end.
   *
   * @param last an event that is not stored, because the task's record was deleted
   */
  end(last?: TaskEvent): void
}

/** The transcript of a running task. Writes events to the database and sends them to listeners. */
export class Transcript {
  readonly #taskId: string
  readonly #records: TaskRecords
  readonly #masks: Masks
  readonly #listeners = new Set<TranscriptListener>()
  #seq: number
  #characters = 0
  /** Events added in the current transaction. */
  #uncommitted: TaskEvent[] | null = null
  #isFull = false
  #hasEnded = false
  /** Masks the current message, which arrives in pieces. */
  #messageMask: MaskStream
  #deltas: PositionedDelta[] = []
  #deltasLength = 0
  /** Characters sent so far of each output. */
  readonly #offsets = new Map<string, number>()

  constructor(taskId: string, records: TaskRecords, masks: Masks) {
    this.#taskId = taskId
    this.#records = records
    this.#masks = masks
    this.#messageMask = masks.stream()
    this.#seq = records.lastSeq(taskId)
  }

  /** Adds a report of the agent. */
  report(event: AgentEvent): void {
    if (event.type === 'toolResult' || event.type === 'message') this.#dropDeltas(event)
    if (this.#isFull) return
    this.#isFull = this.#seq >= MAX_EVENTS || this.#characters >= MAX_CHARACTERS
    // The notice is the last event, in place of the one that is too many.
    this.add(this.#isFull ? { type: 'notice', text: FULL_NOTICE } : event)
  }

  /** Adds a change of the task. */
  add(event: TranscriptEvent): void {
    const cleaned = clean(event, this.#masks)
    const kept = this.#records.addEvent(this.#taskId, this.#seq + 1, cleaned)
    this.#seq += 1
    this.#characters += JSON.stringify(cleaned).length
    if (this.#uncommitted) this.#uncommitted.push(kept)
    else for (const listener of this.#listeners) listener.event(kept)
  }

  /**
   * Runs a transaction that adds events. Notifies listeners after the commit. After a rollback the transcript is as
   * before. Transactions are not nested.
   */
  inTransaction<T>(transact: () => T): T {
    const before = { seq: this.#seq, characters: this.#characters, isFull: this.#isFull }
    const added: TaskEvent[] = []
    this.#uncommitted = added
    let result: T
    try {
      result = transact()
    } catch (error) {
      this.#seq = before.seq
      this.#characters = before.characters
      this.#isFull = before.isFull
      throw error
    } finally {
      this.#uncommitted = null
    }
    for (const event of added) for (const listener of this.#listeners) listener.event(event)
    return result
  }

  /** Sends a piece of output to listeners. Masks secrets in messages; those in command output are masked already. */
  addDelta(delta: OutputDelta): void {
    if (this.#hasEnded) return
    const text = delta.type === 'text' ? this.#messageMask.push(delta.text) : delta.text
    if (text !== '') this.#sendDelta({ ...delta, text })
  }

  /** Returns the output that no event contains yet. */
  get pendingDeltas(): readonly PositionedDelta[] {
    return this.#deltas
  }

  /** Sends new events and deltas to a listener. @returns a function that unsubscribes it */
  subscribe(listener: TranscriptListener): () => void {
    if (this.#hasEnded) listener.end()
    else this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /**
   * Ends the transcript.
   *
   * @param last sent to listeners, but not stored
   */
  end(last?: TranscriptEvent): void {
    this.#hasEnded = true
    // A slow reader gets the last event and nothing after it.
    this.#deltas = []
    const lastEvent = last && this.#records.toEvent(this.#seq + 1, last)
    for (const listener of this.#listeners) listener.end(lastEvent)
    this.#listeners.clear()
  }

  #sendDelta(delta: OutputDelta): void {
    const key = keyOf(delta)
    const offset = this.#offsets.get(key) ?? 0
    this.#offsets.set(key, offset + delta.text.length)
    const shown = { ...delta, offset }
    for (const listener of this.#listeners) listener.delta(shown)
    this.#deltas.push(shown)
    this.#deltasLength += delta.text.length
    while (this.#deltasLength > MAX_PENDING && this.#deltas.length > 1) {
      this.#deltasLength -= this.#deltas.shift()?.text.length ?? 0
    }
  }

  /** Drops the deltas that an event contains in full. */
  #dropDeltas(event: Extract<AgentEvent, { type: 'toolResult' | 'message' }>): void {
    const keys = event.type === 'message' ? ['text'] : STREAMS.map((stream) => `${event.call} ${stream}`)
    if (event.type === 'message') this.#messageMask = this.#masks.stream()
    if (keys.filter((key) => this.#offsets.delete(key)).length === 0) return
    this.#deltas = this.#deltas.filter((delta) => !keys.includes(keyOf(delta)))
    this.#deltasLength = this.#deltas.reduce((sum, { text }) => sum + text.length, 0)
  }
}

const FULL_NOTICE = `The transcript is full: it holds at most ${MAX_EVENTS} events and ${MAX_CHARACTERS} characters. What the agent does from here on is not in it.`

const STREAMS = ['stdout', 'stderr'] as const

/** Identifies the output that a piece belongs to. */
const keyOf = (delta: OutputDelta): string =>
  delta.type === 'text' ? 'text' : `${delta.call} ${delta.stream}`

/** Masks and truncates the texts of an event. */
function clean(event: TranscriptEvent, masks: Masks): TranscriptEvent {
  const entries = Object.entries(event).map(([name, value]) => [
    name,
    UNMASKED_FIELDS.has(name) ? value : cleanValue(name, value, masks),
  ])
  return Object.fromEntries(entries)
}

/** Limits the length of a text to that of a transcript's texts. Returns an already truncated text as it is. */
export const truncate = (text: string): string =>
  text.length <= MAX_TEXT + 1 ? text : `${firstCharacters(text, MAX_TEXT)}…`

function cleanValue(name: string, value: unknown, masks: Masks): unknown {
  if (typeof value === 'string')
    return EXACT_FIELDS.has(name) ? maskedBase64(value, masks) : truncate(masks.mask(value))
  if (Array.isArray(value)) return value.map((one) => cleanValue('', one, masks))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cleanValue(name, one, masks)]))
}

/** Masks what base64 holds. A mask in the base64 itself would make it unreadable. The workbench has bounded its length. */
const maskedBase64 = (base64: string, masks: Masks): string =>
  Buffer.from(exactBytes(masks.mask(exactText(Buffer.from(base64, 'base64'))))).toString('base64')
