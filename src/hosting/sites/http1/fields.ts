/** Octets of HTTP/1.1 that structure a message. */
export const CR = 13
export const LF = 10
const SPACE = 32
const TAB = 9
const COLON = 58
const UNDERSCORE = 95

/** Octets of a token (RFC 9110, section 5.6.2), of which methods and field names consist. */
export const TOKEN = octets("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

/** Octets of a field value (RFC 9110, section 5.5): visible ones, spaces, tabs, and all that are not ASCII. */
export const TEXT = Uint8Array.from({ length: 256 }, (_, octet) =>
  octet === TAB || (octet >= SPACE && octet !== 127) ? 1 : 0,
)

/** Fields that affect framing, the connection or trust. All others pass unchanged. */
export const Field = {
  other: 0,
  connection: 1,
  contentLength: 2,
  transferEncoding: 3,
  host: 4,
  upgrade: 5,
  te: 6,
  /** Applies only to this connection (RFC 9110, section 7.6.1). */
  hop: 7,
  /** Describes the client. Only a proxy may set it. */
  forwarded: 8,
  cookie: 9,
  setCookie: 10,
} as const

/** One of `Field`. */
export type FieldKind = (typeof Field)[keyof typeof Field]

const KNOWN: readonly (readonly [string, FieldKind])[] = [
  ['connection', Field.connection],
  ['content-length', Field.contentLength],
  ['transfer-encoding', Field.transferEncoding],
  ['host', Field.host],
  ['upgrade', Field.upgrade],
  ['te', Field.te],
  ['cookie', Field.cookie],
  ['set-cookie', Field.setCookie],
  ['keep-alive', Field.hop],
  ['proxy-connection', Field.hop],
  // An h2c upgrade is not passed on, and its settings are useless without it.
  ['http2-settings', Field.hop],
  ['forwarded', Field.forwarded],
  ['x-real-ip', Field.forwarded],
]
const X_FORWARDED = Buffer.from('x-forwarded-')

/** Known names by their length. */
const BY_LENGTH: (readonly { name: Uint8Array; kind: FieldKind }[] | undefined)[] = []
for (const [name, kind] of KNOWN) {
  BY_LENGTH[name.length] = [...(BY_LENGTH[name.length] ?? []), { name: Buffer.from(name), kind }]
}

/** Digits of a Content-Length: more than any body has. */
const LENGTH_DIGITS = 15

/** More fields than any client sends. */
const MAX_FIELDS = 256

/** An index of the fields of one head: offsets into its bytes. Each scan overwrites it and allocates nothing. */
export class Fields {
  count = 0
  #bytes: Uint8Array | null = null
  #from = 0
  /** Start of each field's line; at `count` the end of the last. */
  readonly line = new Int32Array(MAX_FIELDS + 1)
  readonly nameEnd = new Int32Array(MAX_FIELDS)
  readonly valueStart = new Int32Array(MAX_FIELDS)
  readonly valueEnd = new Int32Array(MAX_FIELDS)
  readonly kind = new Uint8Array(MAX_FIELDS)

  /**
   * Indexes the field lines of a head (RFC 9112, section 5). The syntax is strict: a token, a colon directly after
   * it, octets of text, CRLF. Folded lines, a bare CR or LF, and a space before the colon are refused: programs read
   * them differently, which is how requests are smuggled.
   *
   * @param from start of the first line
   * @param end end of the head, after its empty line
   * @returns whether all lines are valid and at most 256
   */
  scan(bytes: Uint8Array, from: number, end: number): boolean {
    this.#bytes = bytes
    this.#from = from
    let at = from
    let count = 0
    while (bytes[at] !== CR) {
      if (count === MAX_FIELDS) return false
      this.line[count] = at
      const name = at
      while (TOKEN[bytes[at] as number] === 1) at += 1
      if (at === name || bytes[at] !== COLON) return false
      this.nameEnd[count] = at
      this.kind[count] = kindOf(bytes, name, at)
      do at += 1
      while (bytes[at] === SPACE || bytes[at] === TAB)
      this.valueStart[count] = at
      let last = at
      for (let octet = bytes[at] as number; TEXT[octet] === 1; octet = bytes[at] as number) {
        at += 1
        if (octet !== SPACE && octet !== TAB) last = at
      }
      this.valueEnd[count] = last
      if (bytes[at] !== CR || bytes[at + 1] !== LF) return false
      at += 2
      count += 1
    }
    this.line[count] = at
    this.count = count
    return at + 2 === end
  }

  /** Scans a head again if another one was scanned since. */
  ensure(bytes: Uint8Array, from: number, end: number): void {
    if (this.#bytes !== bytes || this.#from !== from) this.scan(bytes, from, end)
  }

  /** Returns the value of a field, its octets as Latin-1. */
  value(bytes: Buffer, index: number): string {
    return bytes.toString('latin1', this.valueStart[index], this.valueEnd[index])
  }

  /**
   * Returns the value of a Content-Length, as `parseLength` does, without a string in between.
   */
  number(bytes: Uint8Array, index: number): number {
    const from = this.valueStart[index] as number
    const to = this.valueEnd[index] as number
    if (from === to || to - from > LENGTH_DIGITS) return -1
    let number = 0
    for (let at = from; at < to; at += 1) {
      const digit = (bytes[at] as number) - 48
      if (digit < 0 || digit > 9) return -1
      number = number * 10 + digit
    }
    return number
  }

  /**
   * Returns the values of all fields of a name, joined with commas, or null.
   *
   * @param name in lower case
   */
  find(bytes: Buffer, name: string): string | null {
    let found: string | null = null
    for (let index = 0; index < this.count; index += 1) {
      const from = this.line[index] as number
      if ((this.nameEnd[index] as number) - from !== name.length || this.name(bytes, index) !== name) continue
      const value = this.value(bytes, index)
      found = found === null ? value : `${found}, ${value}`
    }
    return found
  }

  /** Reports whether a field's name has a `_`, which `kindOf` treats as a `-`. */
  hasUnderscore(bytes: Uint8Array, index: number): boolean {
    return bytes.subarray(this.line[index], this.nameEnd[index]).includes(UNDERSCORE)
  }

  /** Returns the name of a field in lower case. */
  name(bytes: Buffer, index: number): string {
    return bytes.toString('latin1', this.line[index], this.nameEnd[index]).toLowerCase()
  }
}

/**
 * Returns the kind of a field by its name. `_` counts as `-`, because programs behind CGI variables cannot tell them
 * apart.
 */
export function kindOf(bytes: Uint8Array, from: number, to: number): FieldKind {
  const length = to - from
  const candidates = BY_LENGTH[length]
  if (candidates !== undefined) {
    for (const { name, kind } of candidates) if (isName(bytes, from, name)) return kind
  }
  return length > X_FORWARDED.length && isName(bytes, from, X_FORWARDED) ? Field.forwarded : Field.other
}

/** Returns the kind of a field by its name. */
export function fieldKind(name: string): FieldKind {
  const bytes = Buffer.from(name, 'latin1')
  return kindOf(bytes, 0, bytes.length)
}

function isName(bytes: Uint8Array, from: number, name: Uint8Array): boolean {
  for (let at = 0; at < name.length; at += 1) {
    const octet = bytes[from + at] as number
    if ((octet === 95 ? 45 : octet | 32) !== name[at]) return false
  }
  return true
}

function octets(text: string): Uint8Array {
  const table = new Uint8Array(256)
  for (const octet of Buffer.from(text)) table[octet] = 1
  return table
}
