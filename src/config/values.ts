/** Matches a key that a person chose. */
export const API_KEY = /^sk_live_[A-Za-z0-9_-]{8,128}$/

/** TCP ports from the first to the last, both included. */
export interface PortRange {
  readonly first: number
  readonly last: number
}

/**
 * What an option's value is. Plain data: help and completion load the options without what checks them
 * (check-value.ts).
 */
export type ValueKind =
  /** A text that is not empty. */
  | { readonly kind: 'text' }
  /** A whole number, or its text. */
  | { readonly kind: 'integer'; readonly minimum: number; readonly maximum: number }
  /** True or false, or `true`, `false`, `1` or `0` as text. */
  | { readonly kind: 'switch' }
  /** One of a few texts. */
  | { readonly kind: 'choice'; readonly of: readonly string[] }
  /** Paths in an array, or in a text separated by colons like PATH; `of` says what they are. */
  | { readonly kind: 'list'; readonly of: string }
  /** Hosts in an array, or in a text separated by commas; see runtime/host-pattern.ts. */
  | { readonly kind: 'hosts' }
  /** TCP ports in an array, or in a text separated by commas. */
  | { readonly kind: 'port-list' }
  /** An http or https address without a credential, query or fragment. */
  | { readonly kind: 'url'; readonly example: string }
  /** Texts in an array, or in a text separated by commas; `of` says what they are. */
  | { readonly kind: 'names'; readonly of: string }
  /** An object of texts, its JSON text, or `NAME=TEXT` separated by commas. */
  | { readonly kind: 'texts'; readonly example: string }
  /** An object, or its JSON text. */
  | { readonly kind: 'object'; readonly example: string }
  /**
   * A host name in any case, a key of an account, two ports with a hyphen between, an ISO 8601 time, a duration or `off`,
   * a duration, the address of a Docker engine, a regular expression, the limits of an agent.
   */
  | {
      readonly kind:
        | 'host'
        | 'key'
        | 'ports'
        | 'time'
        | 'timeout'
        | 'duration'
        | 'engine'
        | 'engineNetwork'
        | 'pattern'
        | 'agent-limits'
    }

/** Returns the kind of whole numbers from `minimum` to `maximum`. */
export const integerValue = (minimum: number, maximum: number): ValueKind => ({
  kind: 'integer',
  minimum,
  maximum,
})

/** Returns the kind of a few texts. */
export const choiceValue = (of: readonly string[]): ValueKind => ({ kind: 'choice', of })

/** Returns the kind of lists of paths. @param of what they are, such as `files` */
export const listValue = (of: string): ValueKind => ({ kind: 'list', of })

/** Returns the kind of addresses of services. */
export const url = (example: string): ValueKind => ({ kind: 'url', example })

/**
 * What servers with a network of their own may reach: everything that this machine reaches, the internet, listed hosts,
 * nothing.
 */
export const OUTBOUND_MODES = ['open', 'public', 'list', 'none'] as const

/** The name of what servers may reach. */
export type OutboundMode = (typeof OUTBOUND_MODES)[number]
