import { type Argument, Command, CommanderError } from 'commander'
import { upToUnknown, withDefaults } from './arguments.ts'
import { registerAccounts } from './commands/accounts.ts'
import { registerBuilds } from './commands/builds.ts'
import { registerClock } from './commands/clock.ts'
import { registerCompletion } from './commands/completion.ts'
import { registerDeliveries } from './commands/deliveries.ts'
import { registerDeploy } from './commands/deploy.ts'
import { registerDoctor } from './commands/doctor.ts'
import { registerEvents } from './commands/events.ts'
import { registerExec } from './commands/exec.ts'
import { registerFaults } from './commands/faults.ts'
import { registerFiles } from './commands/files.ts'
import { registerFixtures } from './commands/fixtures.ts'
import { registerInbox } from './commands/inbox.ts'
import { registerInstances } from './commands/instances.ts'
import { registerKeys } from './commands/keys.ts'
import { registerListen } from './commands/listen.ts'
import { registerLogin } from './commands/login.ts'
import { registerLogs } from './commands/logs.ts'
import { registerOpen } from './commands/open.ts'
import { registerOpenApi } from './commands/openapi.ts'
import { registerProjects } from './commands/projects.ts'
import { registerRun } from './commands/run.ts'
import { registerScenarios } from './commands/scenarios.ts'
import { registerSecrets } from './commands/secrets.ts'
import { registerServe } from './commands/serve-options.ts'
import { registerServers } from './commands/servers.ts'
import { registerReset, registerSnapshot } from './commands/snapshot.ts'
import { registerTasks } from './commands/tasks.ts'
import { registerTemplates } from './commands/templates.ts'
import { registerTrigger } from './commands/trigger.ts'
import { registerVersion } from './commands/version.ts'
import { registerWebhooks } from './commands/webhooks.ts'
import { groupItems, reflow } from './help.ts'
import { paint } from './output.ts'
import type { Session } from './session.ts'

const EXAMPLES = `
Examples:
  berth serve                             run the service, on port 4747
  berth run -- bun test                   run it beside an instance of its own
  berth servers create --tier small       provision a server
  berth exec srv_… -- python3 app.py      run a command on it
  berth files write srv_… app.py app.py   put a file there
  berth tasks run "Mend the failing test" give the agent a goal and follow it
  berth projects create . --public        bring the app in this folder up
  berth builds run "A notes page"         build an app for a goal, behind a URL

The commands find the instance of the nearest .berth folder by themselves.
"berth COMMAND --help" explains one command.
`

/** All commands with their options and help, ready to parse. */
export function createProgram(session: Session): Command {
  const { stdout, stderr } = session.terminal
  const program = new Command('berth')
  program
    .description('A local server-provisioning and agent-task API in one executable.')
    .usage('[command] [options]')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(reflow(text, widthOf(program))),
      writeErr: (text) => void stderr.write(text),
      getOutHasColors: () => stdout.colours,
      getErrHasColors: () => stderr.colours,
      outputError: (text, write) => write(inOurWords(text)),
    })
    .configureHelp({
      groupItems,
      styleTitle: (text) => paint(stdout, 'bold', text),
      subcommandTerm: (command) =>
        [[command.name(), ...command.aliases()].join('|'), ...command.registeredArguments.map(termOf)].join(
          ' ',
        ),
      optionDescription: (option) => option.description,
      argumentDescription: (argument) => argument.description,
    })
    .helpOption('-h, --help', 'explain the command')
    .addHelpCommand(
      new Command('help').argument('[command]').description('explain a command').helpGroup('About berth:'),
    )
    .option('-v, --version', 'print the version')
    // Behind a command its own options stand alone.
    .enablePositionalOptions()
    .addHelpText('after', EXAMPLES)
  program.commandsGroup('Run berth:')
  registerServe(program, session)
  registerRun(program, session)
  registerInstances(program, session)
  registerOpen(program, session)
  registerDoctor(program, session)
  program.commandsGroup('Sign in:')
  registerLogin(program, session)
  program.commandsGroup('Use the API:')
  registerServers(program, session)
  registerExec(program, session)
  registerFiles(program, session)
  registerTasks(program, session)
  registerBuilds(program, session)
  registerProjects(program, session)
  registerTemplates(program, session)
  registerSecrets(program, session)
  registerDeploy(program, session)
  registerKeys(program, session)
  registerWebhooks(program, session)
  program.commandsGroup('Test against berth:')
  registerReset(program, session)
  registerSnapshot(program, session)
  registerFaults(program, session)
  registerAccounts(program, session)
  registerClock(program, session)
  registerScenarios(program, session)
  registerLogs(program, session)
  registerEvents(program, session)
  registerDeliveries(program, session)
  registerListen(program, session)
  registerTrigger(program, session)
  registerInbox(program, session)
  registerFixtures(program, session)
  program.commandsGroup('About berth:')
  registerCompletion(program, session)
  registerOpenApi(program, session)
  registerVersion(program, session)
  pointToHelp(program, 'berth')
  return program
}

/** How wide help may be; the library says nothing where no terminal does. */
const widthOf = (program: Command): number => program.configureOutput().getOutHelpWidth?.() ?? 80

/** What the library says of wrong usage, as berth says such things. */
const inOurWords = (text: string): string =>
  text
    .replace(
      /^error: command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\.$/m,
      'error: $2: expected one of $3, got "$1".',
    )
    .replace(/^error: /, 'berth: ')

/** What follows a usage error: where the help is. */
function pointToHelp(parent: Command, path: string): void {
  for (const command of parent.commands) {
    const full = `${path} ${command.name()}`
    command.showHelpAfterError(`Run "${full} --help" for what it takes.`)
    pointToHelp(command, full)
  }
  if (path === 'berth') parent.showHelpAfterError('Run "berth help" for all commands.')
}

function termOf(argument: Argument): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name()
  return argument.required ? `<${name}>` : `[${name}]`
}

/**
 * Parses the arguments and runs the command they name. Resolves to the exit code; what a command
 * throws passes through.
 */
export async function runProgram(args: readonly string[], session: Session): Promise<number> {
  try {
    const program = createProgram(session)
    await program.parseAsync(upToUnknown(program, withDefaults(args)), { from: 'user' })
    return session.exitCode
  } catch (error) {
    // Commander has printed its message already. Help that was asked for is no failure.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    throw error
  }
}
