import { UsageError } from '../../errors.ts'
import { reachLoopbackDirectly } from '../../runtime/process-environment.ts'
import type { LoginKey } from '../../signin/sign-in.ts'
import { Client } from '../client.ts'
import type { Print } from '../command.ts'
import { CommandError } from '../errors.ts'
import { findInstance, type InstanceOptions } from '../find-instance.ts'
import { untilInterrupted } from '../interrupt.ts'
import { facts } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { type Approval, awaitApproval } from './approval.ts'
import type { ResultPage } from './callback.ts'
import { checkWritable, credentialsPath, type Login, readLogins, updateLogins } from './credentials.ts'
import { revoke } from './revoke.ts'
import { findLogin, findTarget } from './target.ts'

/** Options of a sign-in. */
interface LoginOptions extends InstanceOptions {
  /** Whether to open a browser on this machine. */
  browser: boolean
  label?: string | undefined
  /** Only makes a known instance the current one. */
  switch?: boolean | undefined
}

/** Largest number of characters of a key's label. */
const LABEL_LENGTH = 40

const DONE: ResultPage = {
  title: 'You are signed in',
  text: 'Go back to the terminal. You can close this page.',
}

const NOT_DONE: ResultPage = {
  title: 'You are not signed in',
  text: 'It did not work; the terminal says why.',
}

/**
 * Signs in to an instance: a person approves in a browser, and the instance's key is stored.
 *
 * @param given address of the instance
 * @returns the exit code
 * @throws CommandError, UsageError
 */
export async function signIn(
  context: ProcessContext,
  given: string | undefined,
  options: LoginOptions,
  print: Print,
): Promise<number> {
  if (options.switch) return switchTo(context, given, options, print)
  const { label, browser } = options
  checkLabel(label)
  const baseUrl = findTarget(given, options, context)
  // Problems of the file are reported before a person approves.
  checkWritable(context.env)
  reachLoopbackDirectly()
  await checkInstance(baseUrl)
  if (isUnencrypted(baseUrl)) {
    await context.stderr.write(
      `Caution: the connection to ${baseUrl} is not encrypted. Anyone on the way can read the key.\n`,
    )
  }
  return untilInterrupted(async (signal) => {
    const approved = await awaitApproval({ baseUrl, label, browser }, context, signal)
    try {
      const created = await exchange(baseUrl, approved, context)
      const { kept, before } = await saveLogin(baseUrl, created, context.env)
      if (before) await revokePrevious(baseUrl, before, context)
      await approved.showResult(DONE)
      await printLogin(context, baseUrl, kept, print)
      return 0
    } catch (error) {
      await approved.showResult(NOT_DONE)
      throw error
    }
  })
}

/**
 * Stores a new key. If that fails, has its instance delete it: nobody could use it.
 *
 * @returns the new login and the replaced one, which another berth may have written meanwhile
 */
async function saveLogin(
  baseUrl: string,
  created: LoginKey,
  env: ProcessContext['env'],
): Promise<{ kept: Login; before: Login | undefined }> {
  const { key, id, account_id, label, created_at } = created
  const login: Login = { api_key: key, key_id: id, account_id, label, created_at }
  let before: Login | undefined
  try {
    await updateLogins(env, (logins) => {
      before = logins.instances.get(baseUrl)
      logins.instances.set(baseUrl, login)
      logins.current = baseUrl
    })
    return { kept: login, before }
  } catch (error) {
    await revoke(baseUrl, login).catch(() => 'unreachable')
    throw error
  }
}

/** Deletes the replaced key of this instance, so unused keys do not accumulate. */
async function revokePrevious(baseUrl: string, before: Login, { stderr }: ProcessContext): Promise<void> {
  const revoked = await revoke(baseUrl, before).catch(() => 'unreachable')
  if (revoked === 'deleted' || revoked === 'unknown') return
  await stderr.write(
    `The key of before, ${before.key_id}, is still valid there. Delete it with "berth keys delete".\n`,
  )
}

async function printLogin(
  context: ProcessContext,
  baseUrl: string,
  { key_id, account_id, label, created_at }: Login,
  print: Print,
): Promise<void> {
  const kept = credentialsPath(context.env)
  const signedIn = { base_url: baseUrl, account_id, key_id, label, created_at, kept_in: kept }
  await print(signedIn, (_, { out }) => {
    const lines = facts(out, [
      ['Account', account_id],
      ['Key', `${label} (${key_id})`],
      ['Kept in', kept],
    ])
    return `Signed in to ${baseUrl}.\n${lines}`
  })
  const other = otherInstanceWarning(baseUrl, context)
  if (other !== null) await context.stderr.write(other)
}

/** Returns a warning if plain commands use another instance or another key. */
function otherInstanceWarning(baseUrl: string, context: ProcessContext): string | null {
  const { BERTH_API_KEY, BERTH_BASE_URL } = context.env
  const byVariable = BERTH_API_KEY
    ? 'BERTH_API_KEY is set here: commands use that key, and not this login, until you unset it.\n'
    : null
  try {
    const used = findInstance({}, context)
    if (used.baseUrl === baseUrl) return byVariable
    const why = BERTH_BASE_URL ? 'BERTH_BASE_URL says so' : 'it is that of the nearest data directory'
    return `Commands here still talk to ${used.baseUrl}: ${why}. Name this one with --base-url ${baseUrl}\n`
  } catch {
    // Commands here find no instance, and report that themselves.
    return byVariable
  }
}

async function switchTo(
  { env }: ProcessContext,
  given: string | undefined,
  { baseUrl: named }: LoginOptions,
  print: Print,
): Promise<number> {
  const wanted = given ?? named
  if (wanted === undefined)
    throw new UsageError('Say which instance is to be the current one: berth login --switch URL')
  const { baseUrl } = findLogin(readLogins(env), wanted)
  await updateLogins(env, (logins) => {
    logins.current = findLogin(logins, wanted).baseUrl
  })
  await print({ current: baseUrl }, () => `${baseUrl} is the current instance.\n`)
  return 0
}

function checkLabel(label: string | undefined): void {
  if (label === undefined) return
  const length = Array.from(label.trim()).length
  if (length >= 1 && length <= LABEL_LENGTH) return
  throw new UsageError(`--label: expected 1 to ${LABEL_LENGTH} characters, got ${length}.`)
}

/** Reports whether a connection leaves this machine without TLS. */
function isUnencrypted(baseUrl: string): boolean {
  const { protocol, hostname } = new URL(baseUrl)
  return protocol === 'http:' && !/^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

/** Number of attempts to type the code. @bound owner */
const MAX_ATTEMPTS = 3

/** Returns a client without a credential. */
const anonymousClient = (baseUrl: string): Client =>
  new Client({ baseUrl, credential: null, source: 'login' })

/**
 * Checks that an instance accepts sign-ins, before a person opens a browser.
 *
 * @throws CommandError if nothing responds, or something that is not berth
 */
async function checkInstance(baseUrl: string): Promise<void> {
  try {
    await anonymousClient(baseUrl).call('signIn.exchange', { body: { code: '', verifier: '' } })
  } catch (error) {
    // An instance that supports the exchange refuses an empty one.
    if (!isRefused(error)) throw error
  }
}

/**
 * Exchanges the code for a key. Asks again for a mistyped code.
 *
 * @throws CommandError if the instance refuses it
 */
async function exchange(
  baseUrl: string,
  { attempt, code: given, retypeCode }: Approval,
  { stderr }: ProcessContext,
): Promise<LoginKey> {
  const client = anonymousClient(baseUrl)
  let code = given
  for (let tries = 1; ; tries += 1) {
    try {
      const body = { code, verifier: attempt.verifier }
      const created = await client.call('signIn.exchange', { body })
      // An incomplete entry would make the whole file, with all its keys, count as damaged.
      if (isLoginKey(created)) return created
      throw new CommandError(`The program at ${baseUrl} gave no key as berth does. Check the address.`)
    } catch (error) {
      if (!isRefused(error)) throw error
      if (retypeCode === null || tries >= MAX_ATTEMPTS) throw withoutErrorCode(error)
      await stderr.write(
        'This code is not valid. If it is mistyped, type it again. A code is good once and for two minutes:\nfor a new one end with Ctrl-C and run "berth login" again.\n',
      )
      code = await retypeCode()
    }
  }
}

const FIELDS = ['key', 'id', 'account_id', 'label', 'created_at'] as const

const isLoginKey = (created: LoginKey | null): boolean =>
  FIELDS.every((field) => typeof created?.[field] === 'string' && created[field] !== '')

/** Removes the API's error code from a message: a person who mistyped a code did not call the API. */
const withoutErrorCode = ({ message, code }: CommandError): CommandError =>
  new CommandError(message.replace(` (${code})`, ''), 1, code)

const isRefused = (error: unknown): error is CommandError =>
  error instanceof CommandError && error.code === 'bad_request'
