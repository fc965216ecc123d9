import { html } from '../../http/pages/html.ts'
import { isChallenge } from '../../runtime/pkce.ts'
import type { Queries } from '../../storage/database.ts'
import { appAtPort } from '../account-resources.ts'
import { PageFailure } from '../pages/failure.ts'
import { plainName } from '../pages/parts.ts'

/** A terminal's request for a key, as the browser carries it. */
export interface KeyRequest {
  /** S256 of the terminal's verifier (RFC 7636, 4.2). */
  readonly challenge: string
  /**
   * The port on 127.0.0.1 where the terminal listens, and the state that identifies its response; null if a person
   * types the code in.
   */
  readonly callback: { readonly port: number; readonly state: string } | null
  /** The machine's name as the terminal sent it. It is safe to display and proves nothing. */
  readonly host: string
  /** The label for the key. */
  readonly label: string
}

/** Largest number of characters in a label. */
const LABEL_LENGTH = 40

/** Largest number of characters of a machine's name on a page. */
const HOST_LENGTH = 64

/**
 * Reads the parameters of the page or the fields of its form.
 *
 * @throws PageFailure 400 if they are not those of berth's command line
 */
export function readKeyRequest(given: URLSearchParams): KeyRequest {
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
  return { challenge, callback: port === null ? null : { port: Number(port), state }, host, label }
}

/** Returns a terminal's request as form fields. */
export const keyRequestFields = ({
  challenge,
  callback,
  host,
  label,
}: KeyRequest): Record<string, string> => ({
  challenge,
  ...(callback ? { redirect_port: String(callback.port), state: callback.state } : {}),
  host,
  label,
})

/** Returns the default label, `CLI on HOST`, with a long name cut. */
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

/**
 * Refuses a request whose code would go to an app of this instance. No terminal listens at its port, but an app can lead a
 * browser here, and name the person's own machine as the one that asks.
 *
 * @throws PageFailure 400
 */
export function refuseAppPort(queries: Queries, { callback }: KeyRequest): void {
  const app = callback && appAtPort(queries, callback.port)
  if (callback === null || app === null) return
  throw new PageFailure(
    400,
    'An app asks for this key, and no terminal',
    html`<p class="notice failure">The key would go to the app at port ${String(callback.port)} of this machine, which is that of ${app}. It gets none.</p>
<p>If you have run <code>berth login</code>, run it once more.</p>`,
  )
}
