import { reachLoopbackDirectly } from '../../runtime/process-environment.ts'
import { action } from '../command.ts'
import { flag, textOption } from '../options.ts'
import { CONNECTION_GROUP } from '../runner.ts'

/** `berth login` */
export const login = action({
  usage: 'login [INSTANCE]',
  arguments: { INSTANCE: { description: 'its URL, such as http://127.0.0.1:4747' } },
  summary: 'sign in to an instance',
  description:
    'Signs in to an instance: you approve in a browser, and an API key of your own is kept for commands.',
  access: 'none',
  json: 'print who is signed in as JSON, for programs; never the key',
  options: {
    noBrowser: flag('open none; type in the code that a browser elsewhere shows'),
    label: textOption('TEXT', 'what the key is called (default: CLI on this machine)'),
    switch: flag('make a remembered instance the current one, and do nothing else'),
    baseUrl: { ...textOption('URL', 'the instance to sign in to [BERTH_BASE_URL]'), group: CONNECTION_GROUP },
    data: {
      ...textOption('DIR', 'else: the instance of this data directory [BERTH_DATA]'),
      group: CONNECTION_GROUP,
    },
  },
  help: `
Without an INSTANCE it is that of --base-url, of BERTH_BASE_URL, of the nearest
data directory, or the current one. The key is kept in the file credentials.json of
~/.config/berth (or $XDG_CONFIG_HOME/berth), which only you can read.

Examples:
  berth login http://127.0.0.1:4747
  berth login http://127.0.0.1:4747 --no-browser     over ssh, say
  berth login http://127.0.0.1:4747 --switch         of several, use this one
`,
  async run({ session, args: [instance], options, print }) {
    const { signIn } = await import('../login/login.ts')
    return signIn(session.context, instance, { ...options, browser: !options.noBrowser }, print)
  },
})

/** `berth logout` */
export const logout = action({
  usage: 'logout [INSTANCE]',
  arguments: { INSTANCE: { description: 'its URL (default: the current one)' } },
  summary: 'delete the key of a sign-in',
  description: 'Deletes the key of a sign-in on its instance, and forgets it here.',
  access: 'none',
  json: 'print which ones as JSON, for programs',
  options: { all: flag('of every instance that you are signed in to') },
  async run({ session, args: [instance], options, print }) {
    const { signOut } = await import('../login/logout.ts')
    await signOut(session.context, instance, options.all === true, print)
  },
})

/** `berth whoami` */
export const whoami = action({
  usage: 'whoami',
  summary: 'the account that commands use here',
  description:
    'Shows which instance commands talk to here, with which key, and which instances you are signed in to.',
  access: 'api',
  json: 'print it as JSON, for programs',
  help: '\nEnds with 1 where the instance does not accept the key.\n',
  async run({ session, options, print }) {
    const { showIdentity } = await import('../login/whoami.ts')
    reachLoopbackDirectly()
    await showIdentity(session.context, options, print)
  },
})
