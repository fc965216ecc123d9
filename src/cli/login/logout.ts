import { UsageError } from '../../errors.ts'
import { reachLoopbackDirectly } from '../../runtime/process-environment.ts'
import type { Print } from '../command.ts'
import { CommandError } from '../errors.ts'
import type { ProcessContext } from '../process-context.ts'
import { readLogins, updateLogins } from './credentials.ts'
import { type RevokeResult, revoke } from './revoke.ts'
import { findLogin, type KnownLogin } from './target.ts'

/** An instance that was signed out of, for `berth logout --json`. */
interface SignedOut {
  base_url: string
  key_id: string
  /** The result of deleting the key on the instance. */
  key: Exclude<RevokeResult, 'last'>
}

/**
 * Signs out: deletes the key on its instance and then the stored sign-in.
 *
 * @param given address of the instance; by default the current one
 * @param all signs out of every instance
 * @throws CommandError if an instance keeps the key; the sign-in then stays too
 */
export async function signOut(
  context: ProcessContext,
  given: string | undefined,
  all: boolean,
  print: Print,
): Promise<void> {
  const { env, stderr } = context
  if (all && given !== undefined) throw new UsageError('--all means every instance: leave out the URL.')
  const logins = readLogins(env)
  const targets = all
    ? [...logins.instances].map(([baseUrl, login]) => ({ baseUrl, login }))
    : [findLogin(logins, given)]
  reachLoopbackDirectly()
  const left: SignedOut[] = []
  const texts: string[] = []
  const failures: CommandError[] = []
  for (const known of targets) {
    try {
      const { baseUrl, login } = known
      const key = await revokeAndForget(context, known)
      left.push({ base_url: baseUrl, key_id: login.key_id, key })
      texts.push(`Signed out of ${baseUrl}. ${OUTCOMES[key](known)}\n`)
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      failures.push(error)
    }
  }
  if (targets.length === 0) texts.push('You are signed in to no instance.\n')
  await print({ signed_out: left }, () => texts.join(''))
  // The last one is thrown as the failure of the command.
  for (const { message } of failures.slice(0, -1)) await stderr.write(`berth: ${message}\n`)
  const last = failures.at(-1)
  if (last) throw last
}

/**
 * Deletes the key on its instance and the stored sign-in.
 *
 * @returns the result of deleting the key
 */
async function revokeAndForget(
  context: ProcessContext,
  { baseUrl, login }: KnownLogin,
): Promise<SignedOut['key']> {
  const revoked = await revoke(baseUrl, login)
  if (revoked === 'last') {
    throw new CommandError(
      `${baseUrl} keeps the key ${login.key_id}: it is the last one that reaches the whole account. Make another with "berth keys create LABEL --base-url ${baseUrl}", keep that one, and run "berth logout ${baseUrl}" again.`,
    )
  }
  await updateLogins(context.env, (logins) => {
    // Another berth may have signed in again meanwhile.
    if (logins.instances.get(baseUrl)?.key_id !== login.key_id) return
    logins.instances.delete(baseUrl)
    if (logins.current === baseUrl) logins.current = null
  })
  return revoked
}

const OUTCOMES: Record<SignedOut['key'], (known: KnownLogin) => string> = {
  deleted: () => 'The key is deleted there.',
  unknown: () => 'It did not know the key any more.',
  unreachable: ({ login }) =>
    `It cannot be reached: the key is forgotten here, and may be valid there still. Delete it there with "berth keys delete ${login.key_id}".`,
  limited: ({ login }) =>
    `The key was limited and cannot delete itself: it is forgotten here, and valid there still. Delete it there with "berth keys delete ${login.key_id}" and a key that reaches the whole account.`,
}
