import { MASK, Masks } from '../../runtime/masks.ts'
import { jsonOf } from './entry.ts'
import { isSecretName, isVariables, namesIn } from './secret-names.ts'
import type { Shape } from './shape.ts'

/** Credentials by their shape: keys, admin tokens, signing secrets, what stands behind "Bearer", what a URL carries. */
const SHAPES: readonly (readonly [RegExp, string])[] = [
  [/\bsk_live_[\w-]{4,}/g, `sk_live_${MASK}`],
  [/\badmin_[0-9A-Za-z]{20,}/g, `admin_${MASK}`],
  [/\bwhsec_[\w+/=-]{4,}/g, `whsec_${MASK}`],
  [/\b(bearer|basic)(\s{1,8}|%20|\+)[\w.~+/=-]{12,}/gi, `$1$2${MASK}`],
  // Without the scheme, whose letters would be looked at again from each one on.
  [/:\/\/[^\s/@"'<>\\]+@/g, `://${MASK}@`],
]

/** Credentials of a URL that is cut before what follows them. */
const CUT_CREDENTIALS = /:\/\/[^\s/@"'<>\\]+$/

/** A body as it is shown: JSON as its value, anything else as text; null where it is not to be shown at all. */
export type ShownBody = unknown

/** A body to show. */
export interface BodyToMask {
  text: string
  /** Whether there was more of it. */
  isCut: boolean
  /** The shape of what the operation reads; null for an answer. */
  shape: Shape | null
}

/** Hides what is secret in one request and its answer: what its request held as a secret is hidden in its answer too. */
export class Hiding {
  readonly #known: Masks
  /** Values that the request held as secrets; null while there are none. */
  #own: Masks | null = null

  /** @param known values that are secret, such as those of variables */
  constructor(known: Masks) {
    this.#known = known
  }

  /** A text without credentials, by their shape, and without values that are known to be secret. */
  text(text: string): string {
    return this.#known.mask(this.#own?.mask(byShape(text)) ?? byShape(text))
  }

  /** The beginning of a text that was cut: what may be the beginning of a secret is hidden as well. */
  beginning(text: string): string {
    const shaped = byShape(text).replace(CUT_CREDENTIALS, `://${MASK}`)
    const ends = (shown: string, masks: Masks): string => {
      const stream = masks.stream()
      return stream.push(shown) + stream.flush()
    }
    return ends(this.#own ? ends(shaped, this.#own) : shaped, this.#known)
  }

  /** The query of a URL, which begins with its `?`: parameters are hidden by their names too. */
  query(query: string): string {
    const shown = query.replace(
      /([?&])([^=&]*)=([^&]*)/g,
      (whole, before: string, name: string, value: string) => {
        if (value === '' || !isSecretName(decoded(name))) return whole
        this.#hide(value, decoded(value))
        return `${before}${name}=${MASK}`
      },
    )
    return this.text(shown)
  }

  /** A body: JSON by its fields too. What cannot be read as JSON is not shown where it may hold secrets. */
  body({ text, isCut, shape }: BodyToMask): ShownBody {
    const value = isCut ? undefined : jsonOf(text)
    if (value !== undefined)
      return this.#value(
        value,
        { shape, isRequest: shape !== null, isWary: shape?.holdsSecrets ?? false },
        false,
      )
    if (shape?.holdsSecrets || namesIn(text, isCut).some((name) => isSecret(name, shape !== null)))
      return null
    return isCut ? this.beginning(text) : this.text(text)
  }

  #hide(...values: string[]): void {
    this.#own ??= new Masks()
    this.#own.add(values)
  }

  #value(value: unknown, place: Place, secret: boolean): unknown {
    if (Array.isArray(value)) {
      const inside = { ...place, shape: place.shape?.item ?? null }
      return value.map((one) => this.#value(one, inside, secret))
    }
    if (typeof value === 'object' && value !== null) {
      const shown = Object.entries(value).map(([name, inner]) => [
        // A secret may be sent where a name belongs.
        this.text(name),
        this.#field(name, inner, place, secret),
      ])
      return Object.fromEntries(shown)
    }
    if (!secret) return typeof value === 'string' ? this.text(value) : value
    if (typeof value === 'string') this.#hide(value)
    return value === null ? null : MASK
  }

  #field(name: string, value: unknown, place: Place, secret: boolean): unknown {
    const field = place.shape?.field(name) ?? null
    const inside = { ...place, shape: field?.shape ?? null }
    // Lists of names, such as the `keys` of variables, are answered; in a request anything may be meant as a value.
    const byName = isSecret(name, place.isRequest) && (place.isRequest || !Array.isArray(value))
    // Of an object of which each field is described, these say for themselves whether they are secret.
    const byPlace = field?.isNamed ? field.shape.isSecret : secret || (field?.shape.isSecret ?? place.isWary)
    return this.#value(value, inside, byName || byPlace)
  }
}

/** Where a value stands. */
interface Place {
  /** Null where nothing is known of it. */
  shape: Shape | null
  isRequest: boolean
  /** Whether a field that nothing reads may be a secret that was put in the wrong place. */
  isWary: boolean
}

/** Whether a field of this name holds a secret; answers tell of variables by their names alone. */
const isSecret = (name: string, isRequest: boolean): boolean =>
  isSecretName(name) || (isRequest && isVariables(name))

const byShape = (text: string): string =>
  SHAPES.reduce((masked, [shape, replacement]) => masked.replace(shape, replacement), text)

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
