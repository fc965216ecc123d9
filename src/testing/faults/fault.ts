/** Which requests a fault is for, as it is written. What is not given does not matter. */
export interface MatchText {
  /** The id of an operation, such as `exec.run`. */
  readonly operation?: string
  readonly method?: string
  /** The path, exactly or as a glob: `*` or `{id}` is what stands between two slashes, `**` anything. */
  readonly path?: string
  /** The account whose key the request carries. */
  readonly account_id?: string
}

/** An answer in place of the operation's own. */
export interface ErrorText {
  /** 400 to 599. */
  readonly status: number
  /** What stands in `error`; without it what the API says with this status. */
  readonly code?: string
  readonly message?: string
}

/** What a fault does to a request, as it is written: one of these. */
export type EffectText =
  /** It is answered so, and nothing is done. */
  | { readonly error: ErrorText }
  /** It waits for so many milliseconds of physical time, and goes on then. */
  | { readonly delay_ms: number }
  /** Its connection is cut, without an answer. */
  | { readonly disconnect: true }
  /** The compute driver fails whatever the request, and work that it begins, asks of it. */
  | { readonly backend: 'fail' }

/** A fault as it is written: in the control API, in a fixtures file and in the database. */
export interface FaultText {
  readonly match: MatchText
  readonly effect: EffectText
  /** How often it strikes, then never again; always without it. */
  readonly times?: number
  /** How many requests that match pass before it may strike. */
  readonly after?: number
  /** How likely it strikes then: 0 never, 1 always. */
  readonly probability?: number
  /** What decides together with the number of the request: the same seed, the same decisions. */
  readonly seed?: number
}

/** What is known of a request when faults are looked for. */
export interface RequestFacts {
  readonly operation: string | undefined
  readonly method: string
  /** Without a query. */
  readonly path: string
  readonly accountId: string | undefined
  /** It only carries requests of others, each of which faults strike by itself: only its path, written out, means it. */
  readonly isCarrier: boolean
}

/** A path without a slash at its end; the root keeps its own. */
export const withoutEndSlash = (path: string): string => path.replace(/(.)\/+$/, '$1')
