import { type Argument, Command, CommanderError } from 'commander'
import { guideNames } from '../http/docs/guide/pages.ts'
import {
  expandDefaults,
  expandShortNoun,
  markLeftOutServer,
  moveCommonOptions,
  separateCommand,
  truncateAtUnknownCommand,
} from './arguments.ts'
import type { Noun, RunnableCommand } from './command.ts'
import { changes } from './commands/changes.ts'
import { COMPLETE, completion, registerCompletion } from './commands/completion.ts'
import { cp } from './commands/cp.ts'
import { deploy } from './commands/deploy.ts'
import { detect } from './commands/detect.ts'
import { doctor } from './commands/doctor.ts'
import { exec } from './commands/exec.ts'
import { guide } from './commands/guide.ts'
import { env, list, stop, wait } from './commands/instances.ts'
import { listen } from './commands/listen.ts'
import { login, logout, whoami } from './commands/login.ts'
import { logs } from './commands/logs.ts'
import { open } from './commands/open.ts'
import { openapi } from './commands/openapi.ts'
import { registerRun } from './commands/run.ts'
import { registerServe } from './commands/serve-options.ts'
import { shell } from './commands/shell.ts'
import { sync } from './commands/sync.ts'
import { trigger } from './commands/trigger.ts'
import { down, up } from './commands/up.ts'
import { use } from './commands/use.ts'
import { version } from './commands/version.ts'
import { addGuideHints, groupItems, reflow } from './help.ts'
import { API_NOUNS, CONTROL_NOUNS, NAME_SOURCES } from './nouns/index.ts'
import { reset } from './nouns/snapshots.ts'
import { paint } from './output.ts'
import type { ProcessContext } from './process-context.ts'
import { addCommand, addNoun } from './runner.ts'
import type { CliSession } from './session.ts'
import { rewriteUsageError } from './usage-errors.ts'

const EXAMPLES = `
Words:
  server       a sandbox on this machine: files, users and processes of its own
  workspace    a server's directory for your files, where commands begin
  project      a directory of a server, and its app, kept running behind a URL
  deployment   what a server publishes of its workspace, behind a URL
  task, build  a goal for the agent of a server; a build makes an app of it
  instance     a running berth; its data directory keeps all of these

Examples:
  berth serve                             run the service, on port 4747
  berth run -- bun test                   run it beside an instance of its own
  berth servers create --tier small       provision a server
  berth exec srv_… -- python3 app.py      run a command on it
  berth files write srv_… app.py app.py   put a file there
  berth tasks run "Mend the failing test" give the agent a goal and follow it
  berth projects create . --public        bring the app in this directory up
  berth projects push                     send what changed, and restart it
  berth builds run "A notes page"         build an app for a goal, behind a URL

The commands find the instance of the nearest .berth directory by themselves.
"berth COMMAND --help" explains one command, "berth guide" lists the pages of the guide.
`

type Member = Noun | RunnableCommand

/** The groups of the help text with their members, after `serve` and `run`. */
const GROUPS: ReadonlyArray<readonly [group: string, members: readonly Member[]]> = [
  ['Run berth:', [up, down, list, wait, env, stop, open, detect, doctor]],
  ['Sign in:', [login, logout, whoami]],
  ['Use the API:', [...API_NOUNS, shell, exec, cp, sync, deploy, changes, use]],
  ['Test against berth:', [reset, ...CONTROL_NOUNS, logs, listen, trigger]],
  ['About berth:', [guide, completion, openapi, version]],
]

/**
 * Returns all commands with their options and help, ready to parse.
 *
 * @param word if it names a command or a noun, only that one is made: to make all takes most of the time of a short
 *   command. If it is given and names none, nouns get no commands
 */
export function createProgram(session: CliSession, word?: string): Command {
  const { stdout, stderr } = session.context
  const isMeant = (names: readonly string[]) => word !== undefined && names.includes(word)
  const isKnown =
    isMeant(['serve', 'run']) || GROUPS.some(([, members]) => members.some((one) => isMeant(namesOf(one))))
  const isNeeded = (names: readonly string[]) => !isKnown || isMeant(names)
  const program = new Command('berth')
  program
    .description(
      'Servers on this machine, apps behind URLs and tasks for agents: an API and its commands, in one executable.',
    )
    .usage('[command] [options]')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(reflow(text, helpWidth(program))),
      writeErr: (text) => void stderr.write(text),
      getOutHasColors: () => stdout.hasColors,
      getErrHasColors: () => stderr.hasColors,
      outputError: (text, write) => write(rewriteUsageError(text, word)),
    })
    .configureHelp({
      groupItems,
      styleTitle: (text) => paint(stdout, 'bold', text),
      subcommandTerm: (command) =>
        [
          [command.name(), ...command.aliases()].join('|'),
          ...command.registeredArguments.map(argumentTerm),
        ].join(' '),
      optionDescription: (option) => option.description,
      argumentDescription: (argument) => argument.description,
    })
    .helpOption('-h, --help', 'explain the command')
    .addHelpCommand(
      new Command('help')
        .argument('[topic]')
        .description('explain a command, or show a page of the guide')
        .helpGroup('About berth:'),
    )
    .option('-v, --version', 'print the version')
    // Options after a command's name are the command's own.
    .enablePositionalOptions()
    .addHelpText('after', EXAMPLES)
  program.commandsGroup('Run berth:')
  if (isNeeded(['serve'])) registerServe(program, session)
  if (isNeeded(['run'])) registerRun(program, session)
  for (const [group, members] of GROUPS) {
    program.commandsGroup(group)
    for (const member of members.filter((one) => isNeeded(namesOf(one)))) {
      if (!('commands' in member)) addCommand(program, session, member)
      else addNoun(program, session, word === undefined || isKnown ? member : { ...member, commands: [] })
    }
  }
  if (!isKnown) registerCompletion(program, session)
  addHelpHints(program, 'berth')
  addGuideHints(program)
  return program
}

/** Returns the names that a command line may begin with to name a command or a noun. */
const namesOf = (member: Member): readonly string[] => [
  'commands' in member ? member.name : (member.usage.split(' ')[0] ?? ''),
  ...(member.aliases ?? []),
]

/** Returns the width of help texts. Without a terminal the library reports none. */
const helpWidth = (program: Command): number => program.configureOutput().getOutHelpWidth?.() ?? 80

/** Adds the sentence after a usage error that names the help. */
function addHelpHints(parent: Command, path: string): void {
  for (const command of parent.commands) {
    const full = `${path} ${command.name()}`
    command.showHelpAfterError(`Run "${full} --help" for what it takes.`)
    addHelpHints(command, full)
  }
  if (path === 'berth') parent.showHelpAfterError('Run "berth help" for all commands.')
}

function argumentTerm(argument: Argument): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name()
  return argument.required ? `<${name}>` : `[${name}]`
}

/** Makes `help TOPIC` the guide's command where the topic is a page and no command. */
function helpArguments(program: Command, args: readonly string[]): readonly string[] {
  const [first, topic, ...rest] = args
  if (first !== 'help' || topic === undefined || topic.startsWith('-')) return args
  const isCommand = program.commands.some((one) => one.name() === topic || one.aliases().includes(topic))
  return !isCommand && guideNames().includes(topic) ? ['guide', topic, ...rest] : args
}

/** Returns the word of a command line that may name a noun; undefined if all nouns are needed, to complete words. */
function nounWord([first, second]: readonly string[]): string | undefined {
  if (first === COMPLETE) return undefined
  return (first === 'help' ? second : first) ?? ''
}

/** Returns the state of an invocation that has just begun. */
export const newSession = (context: ProcessContext): CliSession => ({
  context,
  names: NAME_SOURCES,
  exitCode: 0,
})

/** Parses the arguments and runs the command. Resolves to the exit code. Errors of the command pass through. */
export async function runProgram(typed: readonly string[], context: ProcessContext): Promise<number> {
  const session = newSession(context)
  const args = moveCommonOptions(typed)
  try {
    const program = createProgram(session, nounWord(args))
    const expanded = expandShortNoun(program, expandDefaults(helpArguments(program, args)))
    const words = separateCommand(program, truncateAtUnknownCommand(program, expanded))
    await program.parseAsync(markLeftOutServer(program, words), { from: 'user' })
    return session.exitCode
  } catch (error) {
    // Commander has already printed its message. A request for help is no failure.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    throw error
  }
}
