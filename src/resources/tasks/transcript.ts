import type { AgentEvent, OutputDelta } from '../../agents/events.ts'
import type { Masks } from '../../apps/masks.ts'
import type { TaskEvent, TaskStatus } from './model.ts'
import type { TaskRecords } from './records.ts'

/** What a transcript holds: what the agent reports, and what becomes of the task. */
export type TranscriptEvent =
  | AgentEvent
  | { readonly type: 'status'; readonly status: TaskStatus; readonly result?: string }
  | { readonly type: 'question'; readonly question: string }
  | { readonly type: 'answer'; readonly answer: string }

/** Events that are kept of one task; what an agent goes on reporting is left out, but for the task's own. */
const MOST_EVENTS = 20_000

/** Characters of one text of an event. */
const LONGEST_TEXT = 256 * 1024

/** Characters of output under way that somebody who begins to watch is shown. */
const MOST_SHOWN = 64 * 1024

/** Somebody who watches: receives kept events and pieces of output, in order. */
export interface Watcher {
  event(event: TaskEvent): void
  delta(delta: OutputDelta): void
  /** No more comes. */
  end(): void
}

/** The transcript of a task that runs: written to the database, and shown to whoever watches. */
export class Transcript {
  readonly #taskId: string
  readonly #records: TaskRecords
  readonly #masks: Masks
  readonly #watchers = new Set<Watcher>()
  #seq: number
  #full = false
  #shown: OutputDelta[] = []
  #shownLength = 0

  /** @param masks what it must not show */
  constructor(taskId: string, records: TaskRecords, masks: Masks) {
    this.#taskId = taskId
    this.#records = records
    this.#masks = masks
    this.#seq = records.lastSeq(taskId)
  }

  /** Adds what the agent reports. */
  report(event: AgentEvent): void {
    if (event.type === 'toolResult' || event.type === 'message') this.#forget(event)
    if (this.#full) return
    this.#full = this.#seq >= MOST_EVENTS
    this.add(
      this.#full
        ? { type: 'notice', text: `The transcript is full: it holds ${MOST_EVENTS} events.` }
        : event,
    )
  }

  /** Adds what becomes of the task. */
  add(event: TranscriptEvent): void {
    this.#seq += 1
    const kept = this.#records.addEvent(this.#taskId, this.#seq, clean(event, this.#masks))
    for (const watcher of this.#watchers) watcher.event(kept)
  }

  /** Shows a piece of output to those who watch now. */
  show(delta: OutputDelta): void {
    for (const watcher of this.#watchers) watcher.delta(delta)
    this.#shown.push(delta)
    this.#shownLength += delta.text.length
    while (this.#shownLength > MOST_SHOWN && this.#shown.length > 1) {
      this.#shownLength -= this.#shown.shift()?.text.length ?? 0
    }
  }

  /** The output under way of which no event tells yet. */
  get underWay(): readonly OutputDelta[] {
    return this.#shown
  }

  /** Tells `watcher` of what comes from now on. @returns ends it */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /** No more comes. */
  end(): void {
    for (const watcher of this.#watchers) watcher.end()
    this.#watchers.clear()
  }

  #forget(event: Extract<AgentEvent, { type: 'toolResult' | 'message' }>): void {
    this.#shown = this.#shown.filter((delta) =>
      event.type === 'message'
        ? delta.type !== 'text'
        : !(delta.type === 'output' && delta.call === event.call),
    )
    this.#shownLength = this.#shown.reduce((sum, { text }) => sum + text.length, 0)
  }
}

/** An event with its texts masked and bounded. */
function clean<T>(value: T, masks: Masks): T {
  if (typeof value === 'string') {
    const masked = masks.mask(value)
    const cut = masked.length <= LONGEST_TEXT ? masked : `${masked.slice(0, LONGEST_TEXT)}…`
    return cut as T
  }
  if (Array.isArray(value)) return value.map((one) => clean(one, masks)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, clean(one, masks)])) as T
}
