import { isChallenge } from '../../runtime/pkce.ts'
import { PageFailure } from '../pages/failure.ts'
import { html } from '../pages/html.ts'
import { plainName } from '../pages/plain-name.ts'

/** What a terminal asks for, as the browser carries it. */
export interface Inquiry {
  /** S256 of its verifier (RFC 7636, 4.2). */
  readonly challenge: string
  /** Where it listens on 127.0.0.1, and what it knows its answer by; null where a person types the code in. */
  readonly back: { readonly port: number; readonly state: string } | null
  /** The name of its machine, as it says: fit to be shown, and no proof of anything. */
  readonly host: string
  /** Of the key that it wants. */
  readonly label: string
}

/** Characters that a label may have. */
const LABEL_LENGTH = 40

/** Characters of a machine's name that are shown. */
const HOST_LENGTH = 64

/**
 * Reads the parameters of the page, or the fields of its form.
 *
 * @throws PageFailure 400 for what no terminal of berth sends
 */
export function readInquiry(given: URLSearchParams): Inquiry {
  const challenge = given.get('challenge') ?? ''
  const port = given.get('redirect_port')
  const state = given.get('state') ?? ''
  if (!isChallenge(challenge)) throw malformed('challenge')
  if (port !== null && !(/^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535)) {
    throw malformed('redirect_port')
  }
  if (port !== null && !/^[A-Za-z0-9_-]{22,128}$/.test(state)) throw malformed('state')
  const host = cut(plainName(given.get('host') ?? ''), HOST_LENGTH) || 'an unnamed machine'
  const label = cut(plainName(given.get('label') ?? ''), LABEL_LENGTH) || labelFor(host)
  return { challenge, back: port === null ? null : { port: Number(port), state }, host, label }
}

/** The same as form fields. */
export const fieldsOf = ({ challenge, back, host, label }: Inquiry): Record<string, string> => ({
  challenge,
  ...(back ? { redirect_port: String(back.port), state: back.state } : {}),
  host,
  label,
})

/** The label of a key that is given none: `CLI on HOST`, of a name that is too long its first part. */
function labelFor(host: string): string {
  const whole = `CLI on ${host}`
  if (lengthOf(whole) <= LABEL_LENGTH) return whole
  const [first = ''] = host.split('.')
  return cut(`CLI on ${first || host}`, LABEL_LENGTH)
}

const cut = (text: string, most: number): string =>
  lengthOf(text) <= most
    ? text
    : `${Array.from(text)
        .slice(0, most - 1)
        .join('')
        .trimEnd()}…`

const lengthOf = (text: string): number => Array.from(text).length

const malformed = (field: string): PageFailure =>
  new PageFailure(
    400,
    'No terminal asks like this',
    html`<p>The address of this page is incomplete or was changed: its <code>${field}</code> is not as berth makes it.</p>
<p>Run <code>berth login</code> in a terminal, and use the address that it prints, whole.</p>`,
  )
