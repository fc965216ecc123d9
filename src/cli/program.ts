import { type Argument, Command, CommanderError } from 'commander'
import type { Catalog, Member } from './command.ts'
import { BACKGROUND, COMPLETE, commandLine, firstWord } from './command-line.ts'
import { registerRun } from './commands/run.ts'
import { registerBackground, registerServe } from './commands/serve.ts'
import { addGuideHints, groupItems, reflow } from './help.ts'
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
  berth tasks run "Fix the failing test"  give the agent a goal and follow it
  berth projects create . --public        bring the app in this directory up
  berth projects push                     send what changed, and restart it
  berth builds run "A notes page"         build an app for a goal, behind a URL

The commands find the instance of the nearest .berth directory by themselves.
"berth COMMAND --help" explains one command, "berth guide" lists the pages of the guide.
`

/** The commands that start an instance in this process: all that a start loads. */
const STARTS: ReadonlySet<string> = new Set(['serve', 'run', BACKGROUND])

const NO_CATALOG: Catalog = { groups: [], names: new Map(), pages: () => [], registerCompletion() {} }

export function createProgram(
  session: CliSession,
  { groups, registerCompletion }: Catalog,
  word?: string,
): Command {
  const { stdout, stderr } = session.context
  const all = groups.flatMap(({ members }) => members)
  const nouns = all.filter((member) => 'commands' in member)
  const isKnown =
    word !== undefined && (STARTS.has(word) || all.some((member) => namesOf(member).includes(word)))
  const isNeeded = (...names: readonly string[]) => !isKnown || names.includes(word)
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
      outputError: (text, write) => write(rewriteUsageError(text, nouns, word)),
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
  if (isNeeded('serve')) registerServe(program, session)
  if (isNeeded('run')) registerRun(program, session)
  if (word === BACKGROUND) registerBackground(program, session)
  for (const { heading, members } of groups) {
    program.commandsGroup(heading)
    for (const member of members.filter((one) => isNeeded(...namesOf(one)))) {
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

/** Returns the state of an invocation that has just begun. */
export const newSession = (context: ProcessContext, { names }: Catalog): CliSession => ({
  context,
  names,
  exitCode: 0,
})

/** Parses the arguments and runs the command. Resolves to the exit code. Errors of the command pass through. */
export async function runProgram(typed: readonly string[], context: ProcessContext): Promise<number> {
  const word = firstWord(typed)
  const catalog = STARTS.has(word) ? NO_CATALOG : (await import('./commands/index.ts')).CATALOG
  const session = newSession(context, catalog)
  try {
    // To complete words takes all commands.
    const program = createProgram(session, catalog, word === COMPLETE ? undefined : word)
    await program.parseAsync(commandLine(program, typed, catalog.pages), { from: 'user' })
    return session.exitCode
  } catch (error) {
    // Commander has already printed its message. A request for help is not a failure.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    throw error
  }
}
