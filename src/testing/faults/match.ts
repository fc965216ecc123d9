import type { FaultMatch, FaultText, RequestFacts } from './fault.ts'

/** Reports whether a fault matches a request. */
export type FaultMatcher = (request: RequestFacts) => boolean

/** Returns the matcher of a fault. */
export function matcherOf({
  operation,
  method,
  path,
  account_id,
  client,
  deliveries,
}: FaultMatch): FaultMatcher {
  const isPath = path === undefined ? () => true : pathMatcher(path)
  const writtenOut = path !== undefined && isLiteral(path)
  return (request) =>
    isOf(deliveries, request.delivery) &&
    (writtenOut || !request.needsPath) &&
    (operation === undefined || operation === request.operation) &&
    (method === undefined || method === request.method) &&
    // A fault of everything would leave the dashboard unable to show it and to remove it.
    (client === undefined ? request.client !== 'dashboard' : client === request.client) &&
    (account_id === undefined || account_id === request.accountId) &&
    isPath(request.path)
}

/** Reports whether a fault is of deliveries if one is attempted, and of that one. */
const isOf = (meant: FaultMatch['deliveries'], attempted: RequestFacts['delivery']): boolean =>
  meant === undefined || attempted === undefined
    ? meant === attempted
    : (meant.webhook_id === undefined || meant.webhook_id === attempted.webhookId) &&
      (meant.event === undefined || meant.event === attempted.event)

function pathMatcher(path: string): (given: string) => boolean {
  const meant = withoutEndSlash(path)
  return isLiteral(path) ? (given) => given === meant : globMatcher(meant)
}

/** Returns a path without a slash at its end; the root keeps its own. */
const withoutEndSlash = (path: string): string => path.replace(/(.)\/+$/, '$1')

/**
 * Reports whether a fault applies to a matching request. Depends only on the fault's rule and counts, so the same
 * requests in the same order get the same faults.
 *
 * @param number the request's number among those that match, from 1
 * @param hits how often the fault has applied
 */
export function appliesTo(fault: FaultText, number: number, hits: number): boolean {
  const { times = Number.POSITIVE_INFINITY, after = 0, probability = 1, seed = 0 } = fault
  return hits < times && number > after && chanceOf(seed, number) < probability
}

/** Returns a number from 0 up to 1, excluding 1. It looks random, and is the same for the same seed and number. */
function chanceOf(seed: number, number: number): number {
  const digest = new Bun.CryptoHasher('sha256').update(`berth:fault:${seed}:${number}`).digest()
  // 48 bits, which a number holds exactly.
  return digest.readUIntBE(0, 6) / 2 ** 48
}

/** `*`, and `{id}` as documents write paths: one segment or a part of one. Two asterisks: anything. */
const WILDCARDS = /(?:\*|\{[^{}/]*\})+/g

/** Characters that mean something to `Bun.Glob` and nothing here. */
const SPECIAL = /[\\?[\]{}!,]/g

/** Matches any text. `Bun.Glob` supports `**` only as a whole segment. */
const ANYTHING = '{*,*/**/*}'

/** Reports whether a path has no wildcard. */
const isLiteral = (glob: string): boolean => glob.search(WILDCARDS) === -1

/** Returns a function that reports whether a glob matches a whole path. */
export function globMatcher(glob: string): (path: string) => boolean {
  let pattern = ''
  let end = 0
  for (const { 0: wildcards, index } of glob.matchAll(WILDCARDS)) {
    pattern += quote(glob.slice(end, index)) + (isAnything(wildcards) ? ANYTHING : '*')
    end = index + wildcards.length
  }
  const matcher = new Bun.Glob(pattern + quote(glob.slice(end)))
  return (path) => matcher.match(path)
}

const isAnything = (wildcards: string): boolean => wildcards.replace(/\{[^}]*\}/g, ' ').includes('**')

const quote = (text: string): string => text.replace(SPECIAL, '\\$&')
