/** Reports whether a value of unknown shape, such as parsed JSON, is an object with fields: neither null nor an array. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the fields of a value of unknown shape; none if it is no object. */
export const fieldsOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {})

/** Returns the objects in a list of unknown shape; none if it is no list. */
export const objectsOf = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isObject) : []

/** Returns the fields of an object in JSON; none for a text that is something else. */
export function fieldsOfJson(text: string): Record<string, unknown> {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return {}
  }
}
