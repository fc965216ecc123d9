import type { TestBerth } from '../support/berth.ts'

const IDS =
  /\b(?:irun|req|acct|wh|term|task|srv|ses|scn|prj|msg|key|grant|flt|exe|evt|dlv|client|bld|dep)_\w{6,}/g

/** What differs between two runs or machines, and what stands in its place. Ids and ports keep their identity by numbers. */
export class Names {
  readonly #seen = new Map<string, string>()
  readonly #counts = new Map<string, number>()

  /** Returns a text with everything that a run makes up replaced. */
  steady(text: string): string {
    return text
      .replace(IDS, (id) => this.#named(id, id.split('_')[0] ?? ''))
      .replace(
        /((?:127\.0\.0\.1|localhost|\[::1\]):)(\d{4,5})/g,
        (_, host, port) => `${host}${this.#named(port, 'port')}`,
      )
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replace(/("(?:\w*_ms|\w*Ms|memory\w*|cpu\w*|uptime\w*|pid|duration\w*)": ?)[\d.]+/g, '$1N')
      .replace(/\b\d+(?:\.\d+)? ?(?:ms|s)\b/g, 'DURATION')
      .replace(/("found": ?)"[\d.]+"/g, '$1"VERSION"')
      .replace(/\b(port )\d{4,5}\b/g, '$1PORT')
      .replace(/\b[0-9a-f]{32,64}\b/g, 'HASH')
  }

  #named(value: string, kind: string): string {
    const known = this.#seen.get(value)
    if (known !== undefined) return known
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    const name = `${kind}#${count}`
    this.#seen.set(value, name)
    return name
  }
}

interface Event {
  id: string
  event: string
  data: { server_id?: string }
}

interface LogLine {
  source: string
  stream?: string
  worker?: string
  text: string
}

/** What one flow of requests shows from outside: responses, events, deliveries and logs, with what differs replaced. */
export class Trace {
  readonly lines: string[] = []
  readonly #berth: TestBerth
  readonly #names = new Names()
  readonly #server: string
  readonly #shown = new Set<string>()

  /** @param server that the flow is about: events of others are not in the trace */
  constructor(berth: TestBerth, server: string) {
    this.#berth = berth
    this.#server = server
  }

  /** Makes a request and keeps it with its response. Returns the response's JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  async call(method: string, path: string, body?: unknown): Promise<any> {
    const response = await this.#berth.call(method, path, body)
    const asked = `${method} ${path}${body === undefined ? '' : ` ${shortened(body)}`}`
    this.#add(`> ${asked}`, `${response.status} ${fieldsOf(response.body, method)}`)
    return response.body
  }

  /** Sends a form and keeps its response. */
  async form(path: string, body: FormData): Promise<void> {
    const response = await this.#berth.fetch(path, { method: 'POST', body })
    this.#add(`> POST ${path} (form)`, `${response.status} ${fieldsOf(await response.json(), 'POST')}`)
  }

  /** Keeps what a page of an app responds: status, type and the first line of its body. */
  async page(url: string, init: RequestInit = {}): Promise<void> {
    const response = await fetch(url, { redirect: 'manual', ...init })
    const [first] = (await response.text()).trim().split('\n')
    const { headers } = response
    const shown = ['content-type', 'location', 'retry-after', 'cache-control']
      .filter((name) => headers.has(name))
      .map((name) => `${name}: ${headers.get(name)}`)
    this.#add(
      `> page ${init.method ?? 'GET'} ${url}`,
      [response.status, ...shown, first?.slice(0, 200)].join('\n'),
    )
  }

  /** Keeps whether anything responds at a URL. */
  async gone(url: string): Promise<void> {
    const status = await fetch(url).then(
      (response) => String(response.status),
      () => 'nothing responds',
    )
    this.#add(`> page GET ${url}`, status)
  }

  /** Keeps a log. Between which lines of the app those of berth stand is up to the machine: each source for itself. */
  async log(path: string): Promise<void> {
    const { body } = await this.#berth.call('GET', path)
    const logs = body.logs as LogLine[]
    const sources = Map.groupBy(logs, ({ source, stream, worker }) =>
      [source, stream, worker].filter((part) => part !== undefined && part !== null).join(' '),
    )
    const shown = [...sources]
      .sort(([one], [other]) => one.localeCompare(other))
      .flatMap(([source, lines]) => inOrder(lines).map(({ text }) => `${source} | ${text}`))
    this.#add(`> log ${path}`, shown.join('\n'))
  }

  /** Keeps the events since the last call, in their order. */
  async events(): Promise<void> {
    const { events } = (await this.#berth.control('GET', '/events')).body as { events: Event[] }
    const added = events.filter(({ id, data }) => data.server_id === this.#server && !this.#shown.has(id))
    for (const { id } of added) this.#shown.add(id)
    this.#add('> events', added.map(({ event, data }) => `${event} ${JSON.stringify(data)}`).join('\n'))
  }

  /** Returns the trace. */
  toString(): string {
    return this.lines.join('\n')
  }

  #add(asked: string, got: string): void {
    this.lines.push(this.#names.steady(asked), this.#names.steady(got), '')
  }
}

/** Fields that say how far a bring-up is, which the response of the request that began it may or may not show. */
const UNDER_WAY = ['init_phase', 'init_phases', 'runtime_status', 'app', 'warnings', 'workers']

/** A response's body, a line for each of its fields. */
function fieldsOf(body: unknown, method: string): string {
  if (typeof body !== 'object' || body === null) return JSON.stringify(body)
  const lines = Object.entries(body).flatMap(([name, value]) => {
    // The response of a push repeats the project, which the next request shows.
    if (name === 'project') return []
    if (method !== 'GET' && 'init_phase' in body && UNDER_WAY.includes(name)) return []
    const shown = name === 'init_phases' ? value.map(({ phase }: { phase: string }) => phase) : value
    return [`  ${name}: ${JSON.stringify(shown)}`]
  })
  return ['', ...lines].join('\n')
}

/** A version ends beside the bring-up of the next one: when it has ended is up to the machine. */
function inOrder(lines: LogLine[]): LogLine[] {
  const [ends = [], others = []] = [true, false].map((wanted) =>
    lines.filter(({ text }) => (text === 'The version before was ended.') === wanted),
  )
  return [...others, ...ends]
}

/** A request's body, without the bytes of an archive. */
function shortened(body: unknown): string {
  return JSON.stringify(body, (key, value) => (key === 'data' && typeof value === 'string' ? '…' : value))
}
