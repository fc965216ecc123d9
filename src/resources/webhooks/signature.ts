import { Webhook } from 'standardwebhooks'
import type { Random } from '../../runtime/random.ts'

/** Makes a signing secret: `whsec_` and base64 of 32 bytes (Standard Webhooks, "Signature scheme"). */
export const newSigningSecret = (random: Random): string =>
  `whsec_${Buffer.from(random.bytes(32)).toString('base64')}`

/**
 * Returns the signing secret of `berth listen`. It is derived from the admin token, which it does not reveal, so it
 * is always the same for an instance.
 */
export const listenSecret = (adminToken: string): string =>
  `whsec_${new Bun.CryptoHasher('sha256', adminToken).update('berth listen: signing secret').digest('base64')}`

/**
 * Returns the headers that sign a delivery (Standard Webhooks, "Webhook headers"): HMAC-SHA256 over id, time and
 * body.
 *
 * @param id the event's id, the same at every attempt
 * @param at milliseconds since 1970
 */
export function signatureHeaders(
  secret: string,
  id: string,
  at: number,
  body: string,
): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, new Date(at), body),
  }
}
