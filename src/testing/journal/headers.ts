/** A header with its value. */
export type HeaderField = readonly [name: string, value: string]

/** Headers as a request or a response has them: Elysia's are an object, with an array for a repeated one. */
export type HeaderSource = Headers | Readonly<Record<string, unknown>> | readonly HeaderField[]

/** Most headers of a message that are kept, and most characters of a value. */
const MAX_FIELDS = 64
const MAX_VALUE = 2_048

/** The end of a value that was cut. */
export const CUT = '…'

/** Returns headers to keep: the first ones, each with the beginning of a long value. */
export function headerFields(source: HeaderSource): readonly HeaderField[] {
  if (isFields(source)) return source
  const fields: HeaderField[] = []
  const entries = source instanceof Headers ? source.entries() : Object.entries(source)
  for (const [name, value] of entries) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (fields.length === MAX_FIELDS) return fields
      const text = String(one)
      fields.push([name.toLowerCase(), text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}${CUT}` : text])
    }
  }
  return fields
}

/** Reports whether headers were kept already, and do not depend on their message any more. */
export const isFields = (source: HeaderSource): source is readonly HeaderField[] => Array.isArray(source)

/** Estimates the memory of headers in bytes. Those that are still their message's count as nothing. */
export const headersSize = (source: HeaderSource): number =>
  isFields(source) ? source.reduce((size, [name, value]) => size + name.length + value.length + 32, 0) : 0
