/**
 * Records a run for its report. A start loads this only if it is to be recorded. `recorded-state.ts` follows what is stored in a
 * state, `learned-secrets.ts` hides credentials, `directory.ts` writes. src/cli/report makes the files that are made at the end.
 */

import type { DescribedOperation } from '../../contract/operation.ts'
import { API_OPERATIONS, listOperations, OperationIndex } from '../../contract/operations.ts'
import { messageOf } from '../../runtime/error-info.ts'
import { Masks } from '../../runtime/masks.ts'
import { Pace } from '../../runtime/pace.ts'
import type { PrintedEnds, RecordedLine, Recorder } from '../../runtime/recorder.ts'
import { addressOf, type JournalEntry, serialized } from '../journal/entry.ts'
import { Masking } from '../journal/mask.ts'
import { shownEntry } from '../journal/shown.ts'
import { REPORT, type ReportDirectory } from './directory.ts'
import { LearnedSecrets } from './learned-secrets.ts'
import { followState, type RecordedDelivery, type StateParts } from './recorded-state.ts'

/**
 * Milliseconds for which lines are collected: a killed run loses no more than those. If the report is hardly ever wanted, they wait
 * longer, and those of a short run that passes are never made.
 */
const FLUSH_MS = { wanted: 100, otherwise: 2_000 }

/** A state that begins to be recorded. */
export interface BegunState extends StateParts {
  /** The instance's own credentials. */
  readonly credentials: readonly string[]
  /** Returns the values of all variables. */
  readonly secrets: () => Iterable<string>
  /** Returns the credential that every command of a server has. */
  readonly credentialOf: (serverId: string) => string
  /** Returns the operations of the routes that a URL's path belongs to. */
  readonly describe: (url: string) => Promise<readonly DescribedOperation[]>
  /** Returns the name of an app by the id of its log; null for a log of another kind. */
  readonly nameOf: (log: string) => string | null
}

/** A line that waits to be masked and written. */
type Waiting = { readonly entry: JournalEntry } | { readonly write: (masking: Masking) => void }

/**
 * Records what happens in an instance in the directory of a report, as it happens: requests, events, deliveries, transcripts,
 * logs, and states of objects, of all accounts, through resets and restored snapshots. All secrets are masked before they are
 * written.
 */
export class RunRecord implements Recorder {
  readonly #directory: ReportDirectory
  readonly #flushMs: number
  readonly #masks = new Masks()
  readonly #learned = new LearnedSecrets(this.#masks)
  readonly #described = new Map<string, DescribedOperation>()
  #operations = new OperationIndex<DescribedOperation>(operationsWith(this.#described))
  #state: BegunState | null = null
  #isDropped = false
  #queue: Waiting[] = []
  #timer: Timer | undefined
  /** Resolves when the lines so far are written. */
  #writing: Promise<void> = Promise.resolve()
  #failure: string | null = null
  /** Operations and statuses of the requests. */
  readonly #responses: { operation: string | null; status: number }[] = []

  /** @param isWanted whether the report is written in any case */
  constructor(directory: ReportDirectory, isWanted: boolean) {
    this.#directory = directory
    this.#flushMs = isWanted ? FLUSH_MS.wanted : FLUSH_MS.otherwise
  }

  /** Operations and statuses of the requests so far, of this run alone. */
  get responses(): readonly { operation: string | null; status: number }[] {
    return this.#responses
  }

  /** Why something could not be recorded; null if all was. */
  get failure(): string | null {
    return this.#failure ?? this.#directory.failure
  }

  /** Hides the credentials in a text everywhere. */
  hide(text: string): void {
    this.mask(text)
  }

  /** Masks the secrets of the run in a text of another origin, such as a command line. */
  mask(text: string): string {
    return new Masking(this.#masks, this.#learned.learn).text(text)
  }

  /** Masks the secrets of the run in the texts of a value, those that were learned since it was written among them. */
  remask(value: unknown): unknown {
    return new Masking(this.#masks, this.#learned.learn).texts(value)
  }

  /**
   * Begins to record a state.
   *
   * @returns a function that ends this; it resolves when everything is written. The state must be open until then.
   */
  begin(state: BegunState): () => Promise<void> {
    this.#state = state
    for (const credential of state.credentials) this.#learned.learn(credential)
    const end = followState(state, {
      server: (id) => this.#learned.learn(state.credentialOf(id)),
      event: (event) => this.#line(REPORT.events, event),
      delivery: (delivery) =>
        this.#write((masking) => this.#append(REPORT.deliveries, shownDelivery(delivery, masking))),
      object: (object) => this.#line(REPORT.objects, object),
      endedFault: (fault) => {
        if (fault.hits === 0) this.#line(REPORT.findings, { kind: 'unapplied_fault', fault })
      },
    })
    return async () => {
      await end()
      await this.flush()
      if (this.#state === state) this.#state = null
    }
  }

  /** Takes a request with its response. */
  readonly entry = (entry: JournalEntry): void => this.#add({ entry })

  response(response: Response): void {
    const headers = [...response.headers]
    const isJson = (response.headers.get('content-type') ?? '').startsWith('application/json')
    const learn = (text: string): void =>
      this.#write((masking) => {
        masking.headers(headers)
        if (text !== '') masking.body({ text, isCut: false, shape: null })
      })
    if (!isJson) learn('')
    else
      response
        .clone()
        .text()
        .then(learn, () => {})
  }

  transcript(taskId: string, event: object): void {
    this.#write((masking) =>
      this.#append(this.#directory.fileOf('transcripts', taskId, taskId), masking.texts(event)),
    )
  }

  logLine(log: string, { at, source, worker, text }: RecordedLine): void {
    // Looked up at once: an app that is deleted has no name any more.
    const file = this.#directory.fileOf('logs', log, this.#state?.nameOf(log) ?? log)
    const origin = worker === undefined ? source : `${source} ${worker}`
    this.#write((masking) => this.#directory.append(file, `${at} ${origin}: ${masking.text(text)}`))
  }

  output(id: string, printed: PrintedEnds): void {
    this.#write((masking) => {
      const text = masking.text(plainText(printed.text)).replace(/\n$/, '')
      if (text !== '') this.#directory.append(this.#directory.fileOf('logs', id, id), text)
    })
  }

  /** Takes a line of the instance's own log, newline included. */
  ownLogLine(line: string): void {
    this.#write((masking) =>
      this.#directory.append(
        this.#directory.fileOf('logs', 'berth', 'berth'),
        masking.text(line.replace(/\n$/, '')),
      ),
    )
  }

  expiredWait(query: object): void {
    this.#line(REPORT.findings, { kind: 'expired_wait', query })
  }

  /** Forgets what waits to be written, and records nothing more. */
  drop(): void {
    this.#isDropped = true
    this.#queue = []
  }

  /** Resolves when everything so far is written. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing = this.#writing.then(() => this.#writeAll())
    return this.#writing
  }

  #line(file: string, value: object): void {
    this.#write((masking) => this.#append(file, masking.texts(value)))
  }

  #append(file: string, value: unknown): void {
    this.#directory.append(file, JSON.stringify(value))
  }

  #write(write: (masking: Masking) => void): void {
    this.#add({ write })
  }

  #add(waiting: Waiting): void {
    if (this.#isDropped) return
    this.#queue.push(waiting)
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(() => void this.flush(), this.#flushMs)
    this.#timer.unref()
  }

  async #writeAll(): Promise<void> {
    try {
      const pace = new Pace()
      while (this.#queue.length > 0) {
        const batch = this.#queue
        this.#queue = []
        this.#masks.update(this.#state?.secrets() ?? [])
        // Requests first: the credentials in them are hidden in everything else.
        for (const waiting of batch) {
          if (!('entry' in waiting)) continue
          await this.#writeEntry(waiting.entry)
          if (pace.due) await pace.rest()
        }
        for (const waiting of batch) {
          if ('write' in waiting) waiting.write(new Masking(this.#masks, this.#learned.learn))
          if (pace.due) await pace.rest()
        }
      }
    } catch (error) {
      // The run goes on without the rest of its report.
      this.#failure ??= messageOf(error)
    }
    this.#directory.flush()
  }

  async #writeEntry(entry: JournalEntry): Promise<void> {
    const { method, url } = entry
    const { path } = addressOf(entry)
    const operation = this.#operations.match(method === 'HEAD' ? 'GET' : method, path)
    if (operation !== undefined && !this.#described.has(operation.id)) {
      for (const one of (await this.#state?.describe(url)) ?? []) this.#described.set(one.id, one)
      this.#operations = new OperationIndex(operationsWith(this.#described))
    }
    const shown = shownEntry(serialized(entry), {
      operations: this.#operations,
      known: this.#masks,
      bodies: true,
      learn: this.#learned.learn,
    })
    this.#responses.push({ operation: shown.operation, status: shown.status })
    this.#append(REPORT.journal, shown)
  }
}

/** Returns all operations of the API; those that are not described yet without their shapes. */
const operationsWith = (described: ReadonlyMap<string, DescribedOperation>): DescribedOperation[] =>
  listOperations(API_OPERATIONS).map(
    (operation) =>
      described.get(operation.id) ?? {
        ...operation,
        successes: [],
        body: undefined,
        query: undefined,
        accountLevel: false,
        streamsBytes: false,
      },
  )

/**
 * Returns a text without what only moves a cursor or sets colours, so that a secret in it is found. A line editor breaks a long
 * line by a space and a carriage return.
 */
const plainText = (text: string): string => Bun.stripANSI(text).replaceAll(/ \r(?!\n)|\r+(?=\n)/g, '')

/** Masks a delivery: its URL, the signature among its headers, and what receivers respond. */
function shownDelivery(delivery: RecordedDelivery, masking: Masking): RecordedDelivery {
  const message = <Part extends { headers: Record<string, string>; body: string }>(part: Part): Part => {
    const headers = masking.headers(Object.entries(part.headers))
    const body = masking.body({ text: part.body, isCut: false, shape: null })
    return { ...part, headers, body: typeof body === 'string' ? body : JSON.stringify(body) }
  }
  return {
    ...delivery,
    url: masking.text(delivery.url),
    attempts: delivery.attempts.map((attempt) => ({
      ...attempt,
      error: attempt.error === null ? null : masking.text(attempt.error),
      request: message(attempt.request),
      response: attempt.response && message(attempt.response),
    })),
  }
}
