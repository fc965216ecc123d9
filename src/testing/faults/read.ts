import { type Given, Mistake } from '../../contract/given.ts'
import { nearest } from '../../contract/nearest.ts'
import { API_OPERATION_IDS } from '../../contract/operations.ts'
import type { EffectText, ErrorText, FaultText, MatchText } from './fault.ts'

/** Faults that are taken at once. */
const MOST_FAULTS = 1_000

/** Most requests that are counted before a fault strikes, or that it strikes. */
const MOST_REQUESTS = 1_000_000_000

/** Longest delay, milliseconds: an hour. */
const LONGEST_DELAY_MS = 3_600_000

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Reads a list of faults. @throws Mistake for whatever no fault has, before anything is done with any */
export function readFaults(given: Given): FaultText[] {
  const entries = given.list('a list of faults')
  if (entries.length > MOST_FAULTS) {
    throw new Mistake(given.place, `expected at most ${MOST_FAULTS} faults, got ${entries.length}.`)
  }
  return entries.map(readFault)
}

/** Reads one fault: `{match, effect, times?, after?, probability?, seed?}`. @throws Mistake */
export function readFault(given: Given): FaultText {
  const fields = given.fields(['match', 'effect', 'times', 'after', 'probability', 'seed'], 'an object')
  const { times, after, probability, seed } = fields
  const match = fields.match ?? given.missing('match', 'an object, {} for every request')
  const effect = fields.effect ?? given.missing('effect', EFFECTS)
  return {
    match: readMatch(match),
    effect: readEffect(effect),
    ...(times && { times: times.integer(1, MOST_REQUESTS) }),
    ...(after && { after: after.integer(0, MOST_REQUESTS) }),
    ...(probability && { probability: readProbability(probability) }),
    ...(seed && { seed: seed.integer(0, Number.MAX_SAFE_INTEGER) }),
  }
}

/** Reads which requests are meant. @throws Mistake */
function readMatch(given: Given): MatchText {
  const { operation, method, path, account_id } = given.fields(['operation', 'method', 'path', 'account_id'])
  return {
    ...(operation && { operation: readOperation(operation) }),
    ...(method && { method: readMethod(method) }),
    ...(path && { path: readPath(path) }),
    ...(account_id && { account_id: account_id.filledText('the id of an account') }),
  }
}

function readOperation(given: Given): string {
  const id = given.filledText('the id of an operation, such as "exec.run"')
  if ((API_OPERATION_IDS as readonly string[]).includes(id)) return id
  const near = nearest(id, API_OPERATION_IDS)
  const hint =
    near.length > 0
      ? `Did you mean ${near.join(', ')}?`
      : 'GET /openapi.json has them as "operationId", such as servers.create and exec.run.'
  throw new Mistake(given.place, `there is no operation ${JSON.stringify(id)}. ${hint}`)
}

function readMethod(given: Given): string {
  const method = given.text('a method').toUpperCase()
  if (METHODS.includes(method)) return method
  throw given.mistake(`one of ${METHODS.join(', ')}`)
}

function readPath(given: Given): string {
  const expected = 'a path without a query that begins with "/" or "*", such as "/servers/*/exec"'
  const path = given.filledText(expected)
  if (!/^[/*]/.test(path) || path.includes('?')) throw given.mistake(expected)
  if (/^\/_berth(?:\/|$)/.test(path)) {
    throw new Mistake(given.place, 'the control API itself has no faults; expected a path of the API.')
  }
  return path
}

const EFFECTS = 'an object with one of error, delay_ms, disconnect, backend'

/** How each kind of effect is read from what stands behind its name. */
const EFFECT_READERS = {
  error: (given: Given): EffectText => ({ error: readError(given) }),
  delay_ms: (given: Given): EffectText => ({ delay_ms: given.integer(0, LONGEST_DELAY_MS) }),
  disconnect: (given: Given): EffectText => {
    if (given.value === true) return { disconnect: true }
    throw given.mistake('true')
  },
  backend: (given: Given): EffectText => {
    if (given.value === 'fail') return { backend: 'fail' }
    throw given.mistake('"fail"')
  },
}

function readEffect(given: Given): EffectText {
  const kinds = Object.keys(EFFECT_READERS) as (keyof typeof EFFECT_READERS)[]
  const fields = given.fields(kinds, EFFECTS)
  const [kind, second] = kinds.filter((name) => fields[name])
  if (kind === undefined) throw given.mistake(EFFECTS)
  if (second !== undefined) {
    throw new Mistake(given.place, `expected one of ${kind} and ${second}: set a fault for each.`)
  }
  return EFFECT_READERS[kind](fields[kind] as Given)
}

function readError(given: Given): ErrorText {
  const { status, code, message } = given.fields(['status', 'code', 'message'])
  return {
    status: (status ?? given.missing('status', 'a status from 400 to 599')).integer(400, 599),
    ...(code && { code: code.filledText('a code') }),
    ...(message && { message: message.filledText('a sentence') }),
  }
}

function readProbability(given: Given): number {
  const { value } = given
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw given.mistake('a number from 0 to 1')
}
