import { type TSchema, Type } from '@sinclair/typebox'
import { parseDuration } from '../runtime/duration.ts'
import { HOST_PATTERN_FORMS, parseHostPattern } from '../runtime/host-pattern.ts'
import { parseIso } from '../runtime/iso-time.ts'
import type { Schema } from '../runtime/validation/expectation.ts'
import { checked, wrong } from '../runtime/validation/validate.ts'
import { ValidationError } from '../runtime/validation/validation-error.ts'
import { AGENT_DEFAULTS, type AgentLimits } from './agents.ts'
import { API_KEY, type ValueKind } from './values.ts'

/** How the values of a kind are read. */
interface Reader {
  readonly schema: TSchema
  /** Returns the value that a text means; undefined if it means none. */
  readonly fromText?: (text: string) => unknown
  /** Returns the setting that a value of the schema makes; undefined if the value makes none. */
  readonly toSetting?: (value: never) => unknown
}

/**
 * Checks the value of an option, and returns the setting that it makes.
 *
 * @param secret no message shows the value
 * @throws ValidationError
 */
export function checkValue(given: unknown, kind: ValueKind, secret: boolean): unknown {
  const { schema, fromText, toSetting } = readerOf(kind)
  const shape = secret ? { ...schema, writeOnly: true } : schema
  const value = checked(typeof given === 'string' ? (fromText?.(given) ?? given) : given, shape)
  const setting = toSetting ? toSetting(value as never) : value
  if (setting === undefined) throw wrong(value, shape as Schema, [])
  return setting
}

const TRUTH: Readonly<Record<string, boolean>> = { true: true, 1: true, false: false, 0: false }

function readerOf(kind: ValueKind): Reader {
  switch (kind.kind) {
    case 'text':
      return { schema: textThat('a text') }
    case 'host':
      return { schema: textThat('a text'), toSetting: (text: string) => text.toLowerCase() }
    case 'integer':
      return {
        schema: Type.Integer({ minimum: kind.minimum, maximum: kind.maximum }),
        fromText: (text) => (text.trim() === '' || Number.isNaN(Number(text)) ? undefined : Number(text)),
      }
    case 'switch':
      return {
        schema: Type.Boolean({ title: 'true, false, 1 or 0' }),
        fromText: (text) => (Object.hasOwn(TRUTH, text) ? TRUTH[text] : undefined),
      }
    case 'choice':
      return { schema: Type.String({ enum: [...kind.of], pattern: `^(?:${kind.of.join('|')})$` }) }
    case 'list':
      return {
        schema: Type.Array(Type.String({ minLength: 1 }), {
          title: `${kind.of} with ":" between, or a list of them`,
        }),
        fromText: (text) => text.split(':').filter(Boolean),
      }
    case 'hosts':
      return {
        schema: Type.Array(Type.String(), {
          title: `hosts with "," between, or a list of them, ${HOST_PATTERN_FORMS}`,
        }),
        fromText: (text) => text.split(',').filter(Boolean),
        toSetting: (hosts: string[]) =>
          hosts.every((host) => parseHostPattern(host) !== null)
            ? hosts.map((host) => host.trim())
            : undefined,
      }
    case 'port-list':
      return {
        schema: Type.Array(Type.Number(), {
          title: 'TCP ports from 1 to 65535 with "," between, or a list of them',
        }),
        fromText: (text) => text.split(',').map((port) => (port.trim() === '' ? Number.NaN : Number(port))),
        toSetting: (ports: number[]) =>
          ports.every((port) => Number.isInteger(port) && port >= 1 && port <= 65_535)
            ? [...new Set(ports)]
            : undefined,
      }
    case 'url':
      return {
        schema: textThat(`an http or https address without a credential, such as ${kind.example}`),
        toSetting: plainUrl,
      }
    case 'names':
      return {
        schema: Type.Array(Type.String({ minLength: 1 }), {
          title: `${kind.of} with "," between, or a list of them`,
        }),
        fromText: (text) => text.split(',').flatMap((one) => one.trim() || []),
      }
    case 'texts':
      return {
        schema: Type.Record(Type.String(), Type.String({ minLength: 1 }), {
          title: `a JSON object of texts such as ${kind.example}`,
        }),
        fromText: (text) => (text.trim().startsWith('{') ? parsed(text) : pairs(text)),
      }
    case 'engine':
      return {
        schema: textThat('unix:///PATH, tcp://HOST:PORT or ssh://[USER@]HOST[:PORT], without a password'),
        toSetting: (text: string) => (ENGINE_ADDRESS.test(text) ? text : undefined),
      }
    case 'engineNetwork':
      return {
        schema: textThat("none, berth or the name of a network, which is not that of the engine's machine"),
        toSetting: (text: string) => (OWN_NETWORK.test(text) ? text : undefined),
      }
    case 'object':
      return { schema: Type.Object({}, { title: `a JSON object such as ${kind.example}` }), fromText: parsed }
    case 'key':
      return {
        schema: Type.String({
          pattern: API_KEY.source,
          title: 'sk_live_ followed by 8 to 128 letters, digits, "_" or "-"',
        }),
      }
    case 'ports':
      return {
        schema: textThat('two ports such as 4800-4999, the first not above the last'),
        toSetting: portRange,
      }
    case 'time':
      return {
        schema: textThat('an ISO 8601 time such as 2030-01-01T00:00:00Z'),
        toSetting: (text: string) => parseIso(text) ?? undefined,
      }
    case 'timeout':
      return {
        schema: Type.Union([Type.String(), Type.Literal(false), Type.Null(), Type.Literal(0)], {
          title: 'a duration such as 90s, 15m or 2h, or "off"',
        }),
        toSetting: timeout,
      }
    case 'duration':
      return {
        schema: textThat('a duration such as 90s, 15m or 2h'),
        toSetting: (text: string) => parseDuration(text) || undefined,
      }
    case 'pattern':
      return { schema: textThat('a regular expression'), toSetting: regularExpression }
    case 'agent-limits':
      return { schema: Limits, fromText: parsed, toSetting: agentLimits }
  }
}

/** Returns the schema of texts that are not empty. @param title words that follow "expected" */
const textThat = (title: string) => Type.String({ minLength: 1, title })

/** Returns an address without a slash at the end, and without anything that is secret or belongs to one request. */
export function plainUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  if (url.username + url.password + url.search + url.hash !== '') return undefined
  return url.href.replace(/\/+$/, '')
}

function portRange(text: string): object | undefined {
  const [, first, last] = /^(\d{1,5})-(\d{1,5})$/.exec(text) ?? []
  const range = { first: Number(first), last: Number(last) }
  return range.first >= 1 && range.first <= range.last && range.last <= 65_535 ? range : undefined
}

/** Returns milliseconds, or null for never. */
function timeout(value: string | false | null | 0): number | null | undefined {
  if (value === 'off' || !value) return null
  const ms = parseDuration(value)
  return ms === null ? undefined : ms || null
}

/** Compiles a regular expression; returns undefined for a text that is none. */
function regularExpression(text: string): RegExp | undefined {
  try {
    return new RegExp(text, 'u')
  } catch {
    return undefined
  }
}

/**
 * The name of a network in which servers have a loopback of their own. `host` has that of the machine, on which a server could take
 * an address that people trust; `container:ID` and the like are another's.
 */
const OWN_NETWORK = /^(?!host$)[a-z0-9][\w.-]*$/i

/** Matches the address of a Docker engine. A password would show in lists of processes. */
const ENGINE_ADDRESS = /^(?:unix:\/\/\/.+|tcp:\/\/[^/@]+\/?|ssh:\/\/(?:[^/@:]+@)?[^/@]+(?:\/.*)?)$/

/** Returns the object that `NAME=TEXT` separated by commas means; undefined for another text. */
function pairs(text: string): object | undefined {
  const all = text.split(',').map((pair) => /^\s*([^=]+)=(.+?)\s*$/.exec(pair))
  return all.includes(null) ? undefined : Object.fromEntries(all.map((pair) => [pair?.[1], pair?.[2]]))
}

/** Parses JSON; returns undefined for a text that is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const Price = Type.Optional(
  Type.Union([Type.Number({ minimum: 0 }), Type.Null()], { title: 'an amount of US dollars' }),
)
const DURATION = { title: 'a duration such as 90s, 10m or 2h' }

/** What `--agent-limits` takes. */
const Limits = Type.Object(
  {
    steps: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
    tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    context: Type.Optional(Type.Integer({ minimum: 1_000, maximum: 100_000_000 })),
    cost: Price,
    time: Type.Optional(Type.String(DURATION)),
    input_price: Price,
    output_price: Price,
  },
  { additionalProperties: false, title: 'a JSON object such as {"steps":50,"time":"10m"}' },
)

/** @throws ValidationError */
function agentLimits(given: (typeof Limits)['static']): AgentLimits {
  const { time, input_price: inputPrice, output_price: outputPrice, ...others } = given
  const timeMs = time === undefined ? AGENT_DEFAULTS.agentLimits.timeMs : parseDuration(time)
  if (!timeMs) throw wrong(time, DURATION, ['time'])
  const limits = { ...AGENT_DEFAULTS.agentLimits, ...others, timeMs }
  if (inputPrice !== undefined) limits.inputPrice = inputPrice
  if (outputPrice !== undefined) limits.outputPrice = outputPrice
  if (limits.cost !== null && (limits.inputPrice === null || limits.outputPrice === null)) {
    throw new ValidationError(
      ['cost'],
      'it needs "input_price" and "output_price" beside it, US dollars for a million tokens.',
    )
  }
  return limits
}
