import { asc, like, sql } from 'drizzle-orm'
import { Webhook } from 'standardwebhooks'
import { secretContext } from '../../resources/webhooks/delivery.ts'
import { webhooks } from '../../resources/webhooks/table.ts'
import type { Cipher } from '../../storage/cipher.ts'
import type { Queries } from '../../storage/database.ts'

/** What a signature turned out to be. */
export interface Verdict {
  /** Null where no known secret can tell. */
  verified: boolean | null
  reason: string
  /** The webhook whose secret made it. */
  webhookId: string | null
}

/** A request whose signature is looked at. */
export interface Signed {
  /** The inbox that got it. */
  inbox: string
  headers: Readonly<Record<string, string>>
  body: Buffer
}

/** What signatures are verified with. */
export interface Verification {
  queries: Queries
  cipher: Cipher
  /** The secret of `berth listen`. */
  listenSecret: string
}

/** The headers of a signature (Standard Webhooks, "Webhook headers"). */
const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const

/** What the library says of a time that is off, and what that means. */
const TIMES: Readonly<Record<string, string>> = {
  'Message timestamp too old': 'The webhook-timestamp is more than five minutes old.',
  'Message timestamp too new': 'The webhook-timestamp is more than five minutes in the future.',
  'Invalid Signature Headers': 'The webhook-timestamp is no number of seconds since 1970.',
}

/**
 * Verifies a request as its receiver would, with the library of Standard Webhooks: by the secrets of the webhooks whose
 * URL leads to the inbox, on whatever host, and by that of `berth listen`.
 */
export function verifySignature({ inbox, headers, body }: Signed, means: Verification): Verdict {
  const missing = HEADERS.filter((name) => !headers[name])
  if (missing.length === HEADERS.length) {
    return unsure(`It is not signed: it has none of the headers ${HEADERS.join(', ')}.`)
  }
  if (missing.length > 0)
    return wrong(`It is not wholly signed: the header ${missing.join(', ')} is missing.`)
  const text = body.toString()
  const pointing = webhooksTo(inbox, means.queries)
  for (const { id, secret } of pointing) {
    const problem = problemOf(means.cipher.open(secret, secretContext(id)), text, headers)
    if (problem === null) return right(`Signed with the secret of the webhook ${id}.`, id)
    if (TIMES[problem]) return wrong(TIMES[problem])
  }
  const problem = problemOf(means.listenSecret, text, headers)
  if (problem === null) return right('Signed with the secret of "berth listen".')
  if (TIMES[problem]) return wrong(TIMES[problem])
  if (pointing.length === 0) {
    return unsure(
      'No webhook of this instance leads to this inbox: the secret of whoever signed is not known.',
    )
  }
  const ids = pointing.map(({ id }) => id).join(', ')
  return wrong(
    `The signature was made for another body, id or time, or with another secret than that of ${ids}, or of "berth listen".`,
  )
}

const right = (reason: string, webhookId: string | null = null): Verdict => ({
  verified: true,
  reason,
  webhookId,
})
const wrong = (reason: string): Verdict => ({ verified: false, reason, webhookId: null })
const unsure = (reason: string): Verdict => ({ verified: null, reason, webhookId: null })

/** What the library has against a signature, or null. */
function problemOf(secret: string, text: string, headers: Signed['headers']): string | null {
  try {
    new Webhook(secret).verify(text, { ...headers }, { jsonParse: false })
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** The webhooks whose URL leads to an inbox. */
function webhooksTo(inbox: string, queries: Queries) {
  const path = `/_berth/inbox/${inbox}`
  const { id, url, secret } = webhooks
  return queries
    .select({ id, url, secret })
    .from(webhooks)
    .where(like(url, '%/_berth/inbox/%'))
    .orderBy(asc(sql`rowid`))
    .all()
    .filter((webhook) => URL.parse(webhook.url)?.pathname.replace(/\/$/, '') === path)
}
