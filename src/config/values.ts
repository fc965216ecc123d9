/** Parsers of option values, for every source. Each throws an Error whose message follows the word "expected". */

/** TCP ports from the first to the last, both included. */
export interface PortRange {
  readonly first: number
  readonly last: number
}

/** Returns a text that is not empty. */
export function text(value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw new Error('a text')
}

/** Returns a whole number from `least` to `most`, or its text. */
export function integer(value: unknown, least: number, most: number): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  if (typeof number === 'number' && Number.isInteger(number) && number >= least && number <= most)
    return number
  throw new Error(`a whole number from ${least} to ${most}`)
}

/** Returns true or false, also from the words for them in a variable. */
export function boolean(value: unknown): boolean {
  if (value === true || value === 'true' || value === '1') return true
  if (value === false || value === 'false' || value === '0') return false
  throw new Error('true, false, 1 or 0')
}

/** Two ports with a hyphen between. */
export function portRange(value: unknown): PortRange {
  const [, first, last] = /^(\d{1,5})-(\d{1,5})$/.exec(String(value)) ?? []
  const range = { first: Number(first), last: Number(last) }
  if (range.first >= 1 && range.first <= range.last && range.last <= 65_535) return range
  throw new Error('two ports such as 4800-4999, the first not above the last')
}

/** Returns the address of a package registry. It takes no credential; a project can have its own. */
export const registryUrl = (value: unknown): string => plainUrl(value, 'https://registry.npmjs.org')

/** Returns the address of a service whose key is a separate option. */
export const serviceUrl = (value: unknown): string => plainUrl(value, 'http://127.0.0.1:11434/v1')

/** Returns an address without a slash at the end, and without anything that is secret or belongs to one request. */
function plainUrl(value: unknown, example: string): string {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
  const plain = url !== null && url.username === '' && url.password === '' && url.search + url.hash === ''
  if (plain && /^https?:$/.test(url.protocol)) return url.href.replace(/\/+$/, '')
  throw new Error(`an http or https address without a credential, such as ${example}`)
}

/** Returns npm's registry on this machine by the environment, or npm's default. */
export function machineRegistry(env: Readonly<Record<string, string | undefined>>): string {
  try {
    return registryUrl(env.npm_config_registry ?? env.NPM_CONFIG_REGISTRY)
  } catch {
    return 'https://registry.npmjs.org'
  }
}

/**
 * Returns paths from a list, or from a text separated by colons like PATH.
 *
 * @param what such as `directories`
 */
export function list(value: unknown, what: string): string[] {
  const given = typeof value === 'string' ? value.split(':').filter(Boolean) : value
  if (Array.isArray(given) && given.every((one) => typeof one === 'string' && one !== '')) return given
  throw new Error(`${what} with ":" between, or a list of them`)
}

/** Returns a regular expression. */
export function regularExpression(value: unknown): RegExp {
  try {
    return new RegExp(text(value), 'u')
  } catch {
    throw new Error('a regular expression')
  }
}

/** Returns an object, or the JSON text of one. */
export function object(value: unknown): object {
  let read = value
  if (typeof value === 'string') {
    try {
      read = JSON.parse(value)
    } catch {
      read = null
    }
  }
  if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read
  throw new Error('a JSON object such as {"servers":5}')
}

/** Returns one of a few texts. */
export function oneOf(value: unknown, allowed: readonly string[]): string {
  if (typeof value === 'string' && allowed.includes(value)) return value
  throw new Error(`one of ${allowed.join(', ')}`)
}
