import type { AgentEvent, OutputDelta } from '../../agents/events.ts'
import type { MaskStream, Masks } from '../../runtime/masks.ts'
import type { TaskEvent } from './model.ts'
import type { TaskRecords } from './records.ts'
import type { TranscriptEvent } from './transcript-event.ts'

/** A piece of output, as watchers receive it. */
export type ShownDelta = OutputDelta & {
  /** The number of characters of the same output or message before it. */
  readonly offset: number
}

/** Most stored events of a task. Further reports of the agent are dropped; the task's own events are kept. */
const MOST_EVENTS = 20_000

/** Characters that are kept of one task, as JSON. */
const MOST_CHARACTERS = 32 * 1024 * 1024

/** Characters of one text of an event. */
const LONGEST_TEXT = 256 * 1024

/** Most characters of unfinished output that a new watcher receives. */
const MOST_SHOWN = 64 * 1024

/** Fields of an event that say what it is: a secret of the same wording must not hide that. */
const STRUCTURE: ReadonlySet<string> = new Set(['type', 'status', 'call', 'tool', 'ok'])

/** Receives stored events and pieces of output, in order. */
export interface Watcher {
  event(event: TaskEvent): void
  delta(delta: ShownDelta): void
  /**
   * Called at the end.
   *
   * @param last an event that is not stored, because the task's record was deleted
   */
  end(last?: TaskEvent): void
}

/** The transcript of a running task, written to the database and sent to watchers. */
export class Transcript {
  readonly #taskId: string
  readonly #records: TaskRecords
  readonly #masks: Masks
  readonly #watchers = new Set<Watcher>()
  #seq: number
  #characters = 0
  /** Events added in the current transaction. */
  #uncommitted: TaskEvent[] | null = null
  #full = false
  #ended = false
  /** The message under way, as far as it is known to hold no secret. */
  #saying: MaskStream
  #shown: ShownDelta[] = []
  #shownLength = 0
  /** How much of each output was shown. */
  readonly #offsets = new Map<string, number>()

  /**
   * @param masks the secrets to mask
   */
  constructor(taskId: string, records: TaskRecords, masks: Masks) {
    this.#taskId = taskId
    this.#records = records
    this.#masks = masks
    this.#saying = masks.stream()
    this.#seq = records.lastSeq(taskId)
  }

  /** Adds a report of the agent. */
  report(event: AgentEvent): void {
    if (event.type === 'toolResult' || event.type === 'message') this.#forget(event)
    if (this.#full) return
    this.#full = this.#seq >= MOST_EVENTS || this.#characters >= MOST_CHARACTERS
    this.add(this.#full ? { type: 'notice', text: FULL } : event)
  }

  /** Adds a change of the task. */
  add(event: TranscriptEvent): void {
    const cleaned = clean(event, this.#masks)
    const kept = this.#records.addEvent(this.#taskId, this.#seq + 1, cleaned)
    this.#seq += 1
    this.#characters += JSON.stringify(cleaned).length
    if (this.#uncommitted) this.#uncommitted.push(kept)
    else for (const watcher of this.#watchers) watcher.event(kept)
  }

  /** Runs a transaction that adds events. Watchers are notified after the commit, and not at all after a rollback. */
  committing<T>(transact: () => T): T {
    const [seq, characters] = [this.#seq, this.#characters]
    const added: TaskEvent[] = []
    this.#uncommitted = added
    try {
      return transact()
    } catch (error) {
      added.length = 0
      this.#seq = seq
      this.#characters = characters
      throw error
    } finally {
      this.#uncommitted = null
      for (const event of added) for (const watcher of this.#watchers) watcher.event(event)
    }
  }

  /** Shows a piece of output to those who watch now; secrets in a message are masked, in other output they are. */
  show(delta: OutputDelta): void {
    if (this.#ended) return
    const text = delta.type === 'text' ? this.#saying.push(delta.text) : delta.text
    if (text !== '') this.#pass({ ...delta, text })
  }

  /** Unfinished output that no event contains yet. */
  get underWay(): readonly ShownDelta[] {
    return this.#shown
  }

  /** Tells `watcher` of what comes from now on. @returns ends it */
  watch(watcher: Watcher): () => void {
    if (this.#ended) watcher.end()
    else this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /**
   * Ends the transcript.
   *
   * @param last sent to watchers, but not stored
   */
  end(last?: TranscriptEvent): void {
    this.#ended = true
    // Whoever is behind comes to the last event, and to nothing after it.
    this.#shown = []
    const told = last && this.#records.event(this.#seq + 1, last)
    for (const watcher of this.#watchers) watcher.end(told)
    this.#watchers.clear()
  }

  #pass(delta: OutputDelta): void {
    const key = keyOf(delta)
    const offset = this.#offsets.get(key) ?? 0
    this.#offsets.set(key, offset + delta.text.length)
    const shown = { ...delta, offset }
    for (const watcher of this.#watchers) watcher.delta(shown)
    this.#shown.push(shown)
    this.#shownLength += delta.text.length
    while (this.#shownLength > MOST_SHOWN && this.#shown.length > 1) {
      this.#shownLength -= this.#shown.shift()?.text.length ?? 0
    }
  }

  /** An event tells whole what was shown in pieces. */
  #forget(event: Extract<AgentEvent, { type: 'toolResult' | 'message' }>): void {
    const told = event.type === 'message' ? ['text'] : STREAMS.map((stream) => `${event.call} ${stream}`)
    if (event.type === 'message') this.#saying = this.#masks.stream()
    if (told.filter((key) => this.#offsets.delete(key)).length === 0) return
    this.#shown = this.#shown.filter((delta) => !told.includes(keyOf(delta)))
    this.#shownLength = this.#shown.reduce((sum, { text }) => sum + text.length, 0)
  }
}

const FULL = `The transcript is full: it holds at most ${MOST_EVENTS} events and ${MOST_CHARACTERS} characters. What the agent does from here on is not in it.`

const STREAMS = ['stdout', 'stderr'] as const

/** Identifies the output that a piece belongs to. */
const keyOf = (delta: OutputDelta): string =>
  delta.type === 'text' ? 'text' : `${delta.call} ${delta.stream}`

/** An event with its texts masked and bounded. */
function clean(event: TranscriptEvent, masks: Masks): TranscriptEvent {
  const entries = Object.entries(event).map(([name, value]) => [
    name,
    STRUCTURE.has(name) ? value : cleanValue(value, masks),
  ])
  return Object.fromEntries(entries)
}

/** A text as long as one may be, or its beginning. One that was cut before stays as it is. */
export const boundedText = (text: string): string =>
  text.length <= LONGEST_TEXT + 1 ? text : `${text.slice(0, LONGEST_TEXT)}…`

function cleanValue(value: unknown, masks: Masks): unknown {
  if (typeof value === 'string') return boundedText(masks.mask(value))
  if (Array.isArray(value)) return value.map((one) => cleanValue(one, masks))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cleanValue(one, masks)]))
}
