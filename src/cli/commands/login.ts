import { type Command, Option } from 'commander'
import type { LoginOptions } from '../login/login.ts'
import type { LogoutOptions } from '../login/logout.ts'
import { type Session, withConnection } from '../session.ts'

const MORE_LOGIN = `
Without an INSTANCE it is that of --base-url, of BERTH_BASE_URL, of the nearest
data folder, or the current one. The key is kept in the file credentials.json of
~/.config/berth (or $XDG_CONFIG_HOME/berth), which only you can read.

Examples:
  berth login http://127.0.0.1:4747
  berth login http://127.0.0.1:4747 --no-browser     over ssh, say
  berth login http://127.0.0.1:4747 --switch         of several, use this one
`

const MORE_WHOAMI = `
Ends with 1 where the instance does not accept the key.
`

/** Adds `login`, `logout` and `whoami`. */
export function registerLogin(program: Command, session: Session): void {
  program
    .command('login')
    .argument('[INSTANCE]', 'its URL, such as http://127.0.0.1:4747')
    .summary('sign in to an instance')
    .description(
      'Signs in to an instance: you approve in a browser, and an API key of your own is kept for commands.',
    )
    .option('--no-browser', 'open none; type in the code that a browser elsewhere shows')
    .option('--label <TEXT>', 'what the key is called (default: CLI on this machine)')
    .option('--switch', 'make a remembered instance the current one, and do nothing else')
    .option('--json', 'print who is signed in as JSON, for programs; never the key')
    .addOption(
      new Option('--base-url <URL>', 'the instance to sign in to [BERTH_BASE_URL]').helpGroup('Connection:'),
    )
    .addOption(
      new Option('--data <DIR>', 'else: the instance of this data folder [BERTH_DATA]').helpGroup(
        'Connection:',
      ),
    )
    .addHelpText('after', MORE_LOGIN)
    .action(async (instance: string | undefined, options: LoginOptions) => {
      const { login } = await import('../login/login.ts')
      session.exitCode = await login(session, instance, options)
    })

  program
    .command('logout')
    .argument('[INSTANCE]', 'its URL (default: the current one)')
    .summary('delete the key of a sign-in')
    .description('Deletes the key of a sign-in on its instance, and forgets it here.')
    .option('--all', 'of every instance that you are signed in to')
    .option('--json', 'print which ones as JSON, for programs')
    .action(async (instance: string | undefined, options: LogoutOptions) => {
      const { logout } = await import('../login/logout.ts')
      await logout(session, instance, options)
    })

  withConnection(
    program
      .command('whoami')
      .summary('whom commands act for here')
      .description(
        'Tells which instance commands talk to here, with which key, and which instances you are signed in to.',
      )
      .option('--json', 'print it as JSON, for programs'),
  )
    .addHelpText('after', MORE_WHOAMI)
    .action(async (options) => {
      const [{ whoami }, { reachLoopbackDirectly }] = await Promise.all([
        import('../login/whoami.ts'),
        import('../../config/config.ts'),
      ])
      reachLoopbackDirectly()
      await whoami(session, options)
    })
}
