import type { LoginKey } from '../../signin/command-line/routes.ts'
import { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import type { Terminal } from '../terminal.ts'
import type { Approved } from './approval.ts'

/** Times that a person may type the code. */
const TRIES = 3

/** A client of an instance for what needs no credential. */
const strange = (baseUrl: string): Client => new Client({ baseUrl, credential: null, source: 'login' })

/**
 * Asks an instance whether a terminal can sign in to it, before a person is sent to a browser.
 *
 * @throws CommandError if nothing responds, or something that is not berth
 */
export async function checkInstance(baseUrl: string): Promise<void> {
  try {
    await strange(baseUrl).call('signIn.exchange', { body: { code: '', verifier: '' } })
  } catch (error) {
    // An exchange of nothing is refused by what knows of exchanges.
    if (!isRefused(error)) throw error
  }
}

/**
 * Exchanges the code for a key. One that is mistyped may be typed again.
 *
 * @throws CommandError where the instance refuses it
 */
export async function exchange(
  baseUrl: string,
  { attempt, code: given, again }: Approved,
  { stderr }: Terminal,
): Promise<LoginKey> {
  const client = strange(baseUrl)
  let code = given
  for (let tries = 1; ; tries += 1) {
    try {
      const body = { code, verifier: attempt.verifier }
      const made = await client.call('signIn.exchange', { body })
      // What is kept must be whole: a file with less in it is taken for damaged, with all the keys that it has.
      if (isWhole(made)) return made
      throw new CommandError(`What answers at ${baseUrl} gave no key as berth does. Check the address.`)
    } catch (error) {
      if (!isRefused(error)) throw error
      if (again === null || tries >= TRIES) throw plainly(error)
      await stderr.write('This code is not valid. Type it again, or end with Ctrl-C.\n')
      code = await again()
    }
  }
}

const FIELDS = ['key', 'id', 'account_id', 'label', 'created_at'] as const

const isWhole = (made: LoginKey | null): boolean =>
  FIELDS.every((field) => typeof made?.[field] === 'string' && made[field] !== '')

/** The same without the API's code: a person who mistyped has asked no API. */
const plainly = ({ message, code }: CommandError): CommandError =>
  new CommandError(message.replace(` (${code})`, ''), 1, code)

const isRefused = (error: unknown): error is CommandError =>
  error instanceof CommandError && error.code === 'bad_request'
