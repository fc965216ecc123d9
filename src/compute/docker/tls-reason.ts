import { createPrivateKey, X509Certificate } from 'node:crypto'
import { codeOf, messageOf } from '../../runtime/error-info.ts'
import type { EngineTls } from './address.ts'

/** What is wrong with the certificate of an engine, by the code of the error. */
const OF_THE_ENGINE: readonly (readonly [RegExp, string])[] = [
  [/CERT_HAS_EXPIRED/, 'its certificate has expired. Give it a new one (dockerd --tlscert).'],
  [
    /ALTNAME/,
    'its certificate is for other names than that of its address. Name it by one of them with --engine, or give it another certificate (dockerd --tlscert).',
  ],
  [
    /UNABLE_TO|SELF_SIGNED/,
    'its certificate is not of the authority in ca.pem. Name a directory with the ca.pem of its authority with --engine-tls.',
  ],
]

/** Returns why a connection with TLS has failed and what to do, in sentences; null if the certificates are not the reason. */
export function tlsReason(error: unknown, { cert, key }: EngineTls): string | null {
  const said = `${codeOf(error)} ${messageOf(error)}`
  const known = OF_THE_ENGINE.find(([code]) => code.test(said))
  if (known !== undefined) return known[1]
  let own: X509Certificate
  try {
    own = new X509Certificate(cert)
    if (!own.checkPrivateKey(createPrivateKey(key))) throw new Error('they are of two pairs')
  } catch (reason) {
    return `cert.pem and key.pem of --engine-tls are no certificate with its key (${messageOf(reason)}). Take both from where they were made.`
  }
  if (!/EPROTO|TLS|SSL|certificate/.test(said)) return null
  // An engine that refuses a certificate says nothing more.
  return `it has refused the certificate in cert.pem, or speaks no TLS there. That one is of ${own.issuer.replaceAll('\n', ', ')} and valid until ${own.validTo}: name a directory with one that holds, of the authority that the engine trusts (dockerd --tlscacert), with --engine-tls.`
}
