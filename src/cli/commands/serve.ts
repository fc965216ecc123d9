import { type Command, Option } from 'commander'
import { CONFIG_OPTIONS, environmentName } from '../../config/config.ts'
import { BACKGROUND } from '../command-line.ts'
import type { StartedBy } from '../instances/registry.ts'
import type { CliSession } from '../session.ts'

/** A flag of a command that is not a configuration option. */
export interface OwnFlag {
  readonly name: string
  /** Name of its value in help texts. A switch has none. */
  readonly value?: string
  readonly description: string
}

/** Flags of `serve` that neither a variable nor the config file sets. */
const SERVE_FLAGS: readonly OwnFlag[] = [
  { name: 'detach', description: 'start it in the background and return when it is ready' },
]

const HELP = `
Each option is also a variable (in brackets) and a key of the config file, by its name without dashes.
A flag beats the variable, the variable beats the file, the file beats the default.
A switch that a variable or the file turns on is turned off with --no-NAME.
BERTH_MASTER_KEY is a variable alone: 32 bytes as base64 or hex that secrets are encrypted under, in place of the
data directory's master.key.

Examples:
  berth serve                              keep everything in ./.berth
  berth serve --ephemeral --port 0 --json  a throw-away instance for a program
  berth serve --detach                     in the background, until "berth stop"
`

/** Adds `serve`. */
export function registerServe(program: Command, session: CliSession): void {
  const command = program
    .command('serve')
    .summary('run the service (also plain "berth")')
    .description('Runs the service until Ctrl-C or SIGTERM; a second signal exits at once.')
    .addHelpText('after', HELP)
  addServeOptions(command, SERVE_FLAGS)
  command.action(async () => {
    const { context } = session
    const { detach: isDetached, ...flags } = givenFlags(command)
    session.exitCode = isDetached
      ? await (await import('../instances/detach.ts')).detach(flags, context)
      : await (await import('../instances/serve.ts')).runService(flags, context)
  })
}

/** Adds the hidden command by which `serve --detach` and `up --detach` start an instance. */
export function registerBackground(program: Command, session: CliSession): void {
  const command = program.command(`${BACKGROUND} <STARTED_BY>`, { hidden: true })
  addServeOptions(command, [])
  command.action(async (startedBy: StartedBy) => {
    const { background } = await import('../instances/background.ts')
    session.exitCode = await background(startedBy, givenFlags(command), session.context)
  })
}

/**
 * Adds the options of `serve` and a command's own flags to the command.
 *
 * @param otherwise descriptions, by name, of options with another meaning than for `serve`
 */
export function addServeOptions(
  command: Command,
  own: readonly OwnFlag[],
  otherwise: Readonly<Record<string, string>> = {},
): void {
  command.option('--config <FILE>', 'config file (default berth.config.json where it exists) [BERTH_CONFIG]')
  for (const { name, value, description, choices, repeatable } of CONFIG_OPTIONS) {
    const flag = value ? `--${name} <${value}>` : `--${name}`
    const option = new Option(flag, otherwise[name] ?? `${description} [${environmentName(name)}]`)
    // The choices are for completion only. The configuration itself refuses other values.
    if (choices) option.argChoices = [...choices]
    if (repeatable) option.argParser((one, before: string[] = []) => [...before, one])
    command.addOption(option)
    if (!value) command.addOption(new Option(`--no-${name}`).hideHelp())
  }
  for (const { name, value, description } of own)
    command.option(value ? `--${name} <${value}>` : `--${name}`, description)
}

/** Returns the given flags by option name, after the command was parsed. */
export function givenFlags(serve: Command): Record<string, unknown> {
  const given = serve.options.filter((option) => serve.getOptionValueSource(option.attributeName()) === 'cli')
  return Object.fromEntries(
    given.map((option) => [option.name().replace(/^no-/, ''), serve.getOptionValue(option.attributeName())]),
  )
}
