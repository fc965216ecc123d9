import { MASK } from '../../apps/masks.ts'
import { jsonOf } from './entry.ts'

/** Replaces what is secret in a text. */
export type MaskText = (text: string) => string

/** Fields whose values are secret wherever they stand: one of text, or an object of them. */
const SECRET_FIELDS = new Set([
  'key',
  'api_key',
  'secret',
  'secrets',
  'env',
  'token',
  'admin_token',
  'password',
])

/** Operations whose bodies hold secrets: of one that cannot be read as JSON nothing is shown. */
const SECRET_BODIES = new Set([
  'secrets.set',
  'projectSecrets.set',
  'projects.create',
  'keys.create',
  'webhooks.create',
])

/** Credentials by their shape: keys, admin tokens, signing secrets, what stands behind "Bearer", what a URL carries. */
const SHAPES: readonly (readonly [RegExp, string])[] = [
  [/\bsk_live_\w{4,}/g, `sk_live_${MASK}`],
  [/\badmin_[0-9A-Za-z]{20,}/g, `admin_${MASK}`],
  [/\bwhsec_[\w+/=-]{4,}/g, `whsec_${MASK}`],
  [/\b(bearer|basic)(\s+|%20|\+)[\w.~+/=-]{12,}/gi, `$1$2${MASK}`],
  // Without the scheme, whose letters would be looked at again from each one on.
  [/:\/\/[^\s/@"'<>\\]+@/g, `://${MASK}@`],
]

/** What looks like a credential, in a text. */
export const maskShapes: MaskText = (text) =>
  SHAPES.reduce((masked, [shape, replacement]) => masked.replace(shape, replacement), text)

/** A body as it is shown: JSON as its value, anything else as text; null where it is not to be shown at all. */
export type ShownBody = unknown

/**
 * A body without its secrets: fields that are secret by their name, credentials by their shape, and what `mask` knows.
 *
 * @param text the body, or its beginning
 * @param whole whether it is all there
 * @param operation the id of the operation that it was meant for
 */
export function maskBody(
  text: string,
  whole: boolean,
  operation: string | undefined,
  mask: MaskText,
): ShownBody {
  const value = whole ? jsonOf(text) : undefined
  if (value !== undefined) return maskValue(value, mask, false)
  return operation !== undefined && SECRET_BODIES.has(operation) ? null : mask(maskShapes(text))
}

function maskValue(value: unknown, mask: MaskText, secret: boolean): unknown {
  if (typeof value === 'string') return secret ? MASK : mask(maskShapes(value))
  if (Array.isArray(value)) return value.map((one) => maskValue(one, mask, secret))
  if (typeof value !== 'object' || value === null) return secret && value !== null ? MASK : value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      // A secret may be sent where a name belongs.
      mask(maskShapes(name)),
      maskValue(inner, mask, secret || (SECRET_FIELDS.has(name) && !isIdentifier(inner))),
    ]),
  )
}

/** Names of secrets are no secrets: `{"keys": ["TOKEN"]}` stays readable, and so do lists of keys. */
const isIdentifier = (value: unknown): boolean => Array.isArray(value)
