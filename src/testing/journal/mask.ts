import { percentDecoded } from '../../runtime/decode.ts'
import { MASK, Masks } from '../../runtime/masks.ts'
import type { BodySchema } from './body-schema.ts'
import { CUT, type HeaderField, jsonOf } from './entry.ts'

/**
 * Patterns of credentials: keys, admin tokens, what OAuth issues, signing secrets, the token after "Bearer", and those in URLs. The
 * groups are what stays before the secret, the secret, and what stays behind it.
 */
const CREDENTIAL_PATTERNS: readonly RegExp[] = [
  /\b(sk_live_)([\w-]{4,})()/g,
  /\b(admin_)([0-9A-Za-z]{20,})()/g,
  /\b(berth_(?:at|rt|ac|cs)_)([\w-]{4,})()/g,
  /\b(whsec_)([\w+/=-]{4,})()/g,
  // Links that sign a browser in.
  /(\/signin\/link\/)([\w-]{8,})()/g,
  /\b((?:bearer|basic)(?:\s{1,8}|%20|\+))([\w.~+/=-]{12,})()/gi,
  // Starts after the scheme. A pattern with the scheme would be tried at each of its letters.
  /(:\/\/)([^\s/@"'<>\\]+)(@)/g,
]

/** Matches a text that may have one of them. Most texts have none, and need no further look. */
const HAS_BEGINNING = /sk_live_|admin_|berth_|whsec_|\/signin\/link\/|bearer|basic|:\/\//i

/** Receives a secret that was found by its pattern, its name or its header. */
export type LearnSecret = (secret: string) => void

/** The credentials of a URL that was cut within them. */
const CUT_CREDENTIALS = /:\/\/[^\s/@"'<>\\]+$/

/** Headers whose last word is that of a secret, although their value is not secret. */
const HARMLESS = ['idempotency-key', 'sec-websocket-key']

/** Last words of the names of headers that hold a secret: `x-api-key`, `webhook-signature`, `x-berth-csrf`. */
const SECRET_WORD = /(?:key|token|secret|signature|sig|password|passwd|credential|credentials|csrf|xsrf)$/

/** Shortest value of a secret header that is masked in the rest of the exchange too: shorter ones are in any text. */
const SHORTEST_HIDDEN = 12

/** Times that a secret in a URL may be encoded: by the client, and by whatever has put the URL together. */
const ENCODED_LEVELS = 3

/** A masked body: the value of JSON, else text; null if it must not be shown. */
export type ShownBody = unknown

/** A body to mask. */
interface BodyToMask {
  text: string
  /** Whether the rest was dropped. */
  isCut: boolean
  /** The schema of the request's body; null for a response. */
  shape: BodySchema | null
}

/**
 * Masks the secrets in a request and its response. Values that were secret in the request are masked in its response
 * too.
 */
export class Masking {
  readonly #known: Masks
  readonly #learn: LearnSecret | undefined
  /** Secret values of the request; null while there are none. */
  #own: Masks | null = null

  /**
   * @param known secret values, such as those of variables
   * @param learn receives the credentials that are found
   */
  constructor(known: Masks, learn?: LearnSecret) {
    this.#known = known
    this.#learn = learn
  }

  /** Masks credentials by their pattern, and known secret values. */
  text(text: string): string {
    const shown = byShape(text, this.#learn)
    return this.#known.mask(this.#own?.mask(shown) ?? shown)
  }

  /**
   * Masks every text in a value that berth itself has made, such as an object of the API. Its ids, times and states stay, also if a
   * short secret is part of one.
   */
  texts(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value)
    if (Array.isArray(value)) return value.map((one) => this.texts(one))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [
        this.text(name),
        typeof inner === 'string' && OWN_FIELD.test(name) ? inner : this.texts(inner),
      ]),
    )
  }

  /** Masks the beginning of a text that was cut, including a secret that was cut at its end. */
  beginning(text: string): string {
    const shaped = byShape(text, this.#learn).replace(CUT_CREDENTIALS, `://${MASK}`)
    const ends = (shown: string, masks: Masks): string => {
      const stream = masks.stream()
      return stream.push(shown) + stream.flush()
    }
    return ends(this.#own ? ends(shaped, this.#own) : shaped, this.#known)
  }

  /** Masks a URL's query, which begins with its `?`, also by the names of parameters. */
  query(query: string): string {
    const shown = query.replace(
      /([?&])([^=&]*)=([^&]*)/g,
      (_, before: string, name: string, value: string) => {
        if (value === '' || !isSecretName(decoded(name))) return `${before}${name}=${this.#component(value)}`
        this.#hide(value, decoded(value))
        this.#learn?.(decoded(value))
        return `${before}${name}=${MASK}`
      },
    )
    return this.text(shown)
  }

  /** Masks a URL's path, also where a secret in it is encoded more than once. */
  path(path: string): string {
    if (!path.includes('%')) return this.text(path)
    return this.text(path.replace(/[^/]+/g, (segment) => this.#component(segment)))
  }

  /** Masks a part of a URL; returns it unchanged if it has no secret that only decoding shows. */
  #component(part: string): string {
    let plain = part
    for (let level = 0; level < ENCODED_LEVELS && plain.includes('%'); level += 1) {
      plain = decoded(plain)
      const shown = this.text(plain)
      if (shown !== plain) return encodeURIComponent(shown)
    }
    return part
  }

  /** Masks a body. JSON is masked by its fields too. A body that is not JSON is not shown if it may hold secrets. */
  body({ text, isCut, shape }: BodyToMask): ShownBody {
    const value = isCut ? undefined : jsonOf(text)
    if (value !== undefined)
      return this.#value(
        value,
        { shape, isRequest: shape !== null, isWary: shape?.holdsSecrets ?? false },
        false,
      )
    if (shape?.holdsSecrets || namesIn(text, isCut).some((name) => hasSecretName(name, shape !== null)))
      return null
    return isCut ? this.beginning(text) : this.text(text)
  }

  /**
   * Masks headers, and joins repeated ones (RFC 9110, 5.3). Of credentials only the scheme and the names of cookies are
   * shown.
   */
  headers(fields: readonly HeaderField[]): Record<string, string> {
    const shown: Record<string, string> = Object.create(null)
    for (const [name, value] of fields) {
      const key = this.text(name)
      const text = this.#header(name, value)
      shown[key] = key in shown ? `${shown[key]}, ${text}` : text
    }
    return shown
  }

  #header(name: string, value: string): string {
    const hide = (secret: string): string => {
      // One that its pattern shows is masked anyway.
      if (secret.length >= SHORTEST_HIDDEN && byShape(secret) === secret) this.#hide(secret)
      this.#learn?.(secret)
      return MASK
    }
    const inCookie = (_: string, cookie: string, secret: string): string => `${cookie}=${hide(secret)}`
    switch (name) {
      case 'authorization':
      case 'proxy-authorization': {
        const [, scheme = '', credential = value] = /^([\w-]{1,20}\s+)(.*)$/s.exec(value) ?? []
        return scheme + hide(credential)
      }
      case 'cookie':
        return value.replace(/([^\s;=]+)=([^;]*)/g, inCookie)
      case 'set-cookie':
        return value.replace(/^([^;=]+)=([^;]*)/, inCookie)
    }
    if (SECRET_WORD.test(name) && !HARMLESS.includes(name)) return hide(value)
    const query = value.indexOf('?')
    if (query >= 0) return this.text(value.slice(0, query)) + this.query(value.slice(query))
    return value.endsWith(CUT) ? this.beginning(value) : this.text(value)
  }

  #hide(...values: string[]): void {
    this.#own ??= new Masks()
    this.#own.add(values)
  }

  #value(value: unknown, context: ValueContext, secret: boolean): unknown {
    if (Array.isArray(value)) {
      const inside = { ...context, shape: context.shape?.item ?? null }
      return value.map((one) => this.#value(one, inside, secret))
    }
    if (typeof value === 'object' && value !== null) {
      const shown = Object.entries(value).map(([name, inner]) => [
        // A client may send a secret as a name.
        this.text(name),
        this.#field(name, inner, context, secret),
      ])
      return Object.fromEntries(shown)
    }
    if (!secret) return typeof value === 'string' ? this.text(value) : value
    if (typeof value === 'string') this.#hide(value)
    return value === null ? null : MASK
  }

  #field(name: string, value: unknown, context: ValueContext, secret: boolean): unknown {
    const field = context.shape?.field(name) ?? null
    const inside = { ...context, shape: field?.shape ?? null }
    // In a response, such a name may hold a list of names, as the `keys` of variables do. In a request any value may
    // be secret.
    const byName = hasSecretName(name, context.isRequest) && (context.isRequest || !Array.isArray(value))
    if (typeof value === 'string' && isSecretName(name)) this.#learn?.(value)
    // If the schema describes each field, it decides which are secret.
    const byPlace = field?.isNamed
      ? field.shape.isSecret
      : secret || (field?.shape.isSecret ?? context.isWary)
    return this.#value(value, inside, byName || byPlace)
  }
}

/** The context of a value. */
interface ValueContext {
  /** Null if the schema does not describe it. */
  shape: BodySchema | null
  isRequest: boolean
  /** Whether an unknown field may hold a misplaced secret. */
  isWary: boolean
}

/** Reports whether a field of this name holds a secret. Responses contain only the names of variables. */
const hasSecretName = (name: string, isRequest: boolean): boolean =>
  isSecretName(name) || (isRequest && isVariables(name))

const byShape = (text: string, learn?: LearnSecret): string =>
  HAS_BEGINNING.test(text)
    ? CREDENTIAL_PATTERNS.reduce(
        (masked, pattern) =>
          masked.replace(pattern, (_, before: string, secret: string, behind: string) => {
            learn?.(secret)
            return before + MASK + behind
          }),
        text,
      )
    : text

/** Names of fields that hold an id, a time or a state, which berth makes. */
const OWN_FIELD = /^(?:id|at|type|kind|status|event|key)$|(?:_id|_at|Id|At)$/

const decoded = (text: string): string => percentDecoded(text.replaceAll('+', ' ')) ?? text

/** Names of fields and parameters that are secret everywhere, reduced to letters and digits. */
const SECRETS = [
  'accesskey',
  'accesstoken',
  'admintoken',
  'apikey',
  'apitoken',
  'authorization',
  'clientsecret',
  'credential',
  'credentials',
  'key',
  'passphrase',
  'passwd',
  'password',
  'privatekey',
  'refreshtoken',
  'secret',
  'secretkey',
  'sig',
  'signature',
  'token',
]

/** Names of request fields that hold variables. */
const VARIABLES = ['env', 'environment', 'envs', 'secrets', 'variables', 'vars']

/** Removes the differences between naming conventions. */
const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')

/** Reports whether a field of this name holds a secret: `apiKey`, `api_key` and `API-KEY` alike. */
const isSecretName = (name: string): boolean => SECRETS.includes(plain(name))

/** Reports whether a field of this name holds variables, whose values are secret. */
const isVariables = (name: string): boolean => VARIABLES.includes(plain(name))

/** Matches a name before a value in any text: `password=`, `"apiKey": `, `{apiKey: `. */
const ASSIGNED = /\b([\w-]{2,24})["'\\]{0,4}\s{0,8}[:=]/g

/** Matches the same in the beginning of JSON, where a quote within a text follows a backslash. */
const FIELD = /(?<!\\)"([\w-]{2,24})"\s{0,8}:/g

/**
 * Returns the names of fields in a text that cannot be parsed as JSON.
 *
 * @param isBeginning whether the text is JSON that was cut
 */
const namesIn = (text: string, isBeginning: boolean): string[] =>
  Array.from(text.matchAll(isBeginning ? FIELD : ASSIGNED), ([, name = '']) => name)
