import { type Command, InvalidArgumentError, Option } from 'commander'
import type { CreatedTask, Task } from '../../resources/tasks/model.ts'
import { chooseServer } from '../choose-server.ts'
import type { ConnectionOptions } from '../instance.ts'
import { table } from '../output.ts'
import { path } from '../path.ts'
import {
  connect,
  connectControl,
  printJson,
  type Session,
  withConnection,
  withControl,
  withJson,
} from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  server?: string
  file?: string
  follow?: boolean
  detach?: boolean
  after?: number
}

const CODES =
  'The exit code is 0 when the task is completed, 1 where it failed, 3 where it waits for an answer, 4 where it was cancelled.'

const MORE_RUN = `
What the agent does goes to stderr while it does it, the result to stdout. At a terminal its questions are put to
you; elsewhere a question ends the command, and "berth tasks answer" lets the task go on. Ctrl-C leaves the task going.
${CODES}

Examples:
  berth tasks run "Add a health check to the app"
  berth tasks run --file goal.md --server srv_…
  echo "run: bun test" | berth tasks run - > result.txt
`

const MORE_ANSWER = `
Without TEXT the answer is asked for; - takes it from standard input. With --follow:
${CODES}
`

/** Adds `tasks` and what can be done with them. */
export function registerTasks(program: Command, session: Session): void {
  const { stdout, stderr } = session.terminal
  const tasks = program
    .command('tasks')
    .helpCommand(false)
    .summary('give goals to the agent of a server, follow and answer it')
    .description(
      'Gives goals to the agent of a server, follows and answers it. Plain "berth tasks" lists the tasks there are.',
    )
  const add = (usage: string, description: string) =>
    withConnection(tasks.command(usage).description(description))

  withJson(add('list', 'list tasks, newest first'))
    .option('--server <SERVER>', 'those of one server only')
    .action(async (options: Options) => {
      const client = await connect(session, options)
      const [{ listTasks }, { TASK_COLUMNS }] = await Promise.all([
        import('../tasks/find.ts'),
        import('../tasks/show.ts'),
      ])
      const found = await listTasks(client, options.server)
      if (options.json) return printJson(session, { tasks: found })
      if (found.length === 0) return stdout.write('No tasks yet. Give a goal with "berth tasks run".\n')
      await stdout.write(table(stdout, TASK_COLUMNS, found))
    })

  withJson(add('run [GOAL]', 'give a goal and follow the agent to its end'))
    .configureOutput({ outputError: explainWords })
    .option('--server <SERVER>', 'the server it is for; needed where there are several')
    .option('--file <FILE>', 'the goal is the text of this file; - is standard input')
    .addOption(new Option('-f, --follow', 'follow it (the default)').conflicts('detach'))
    .option('-d, --detach', 'return at once, while the agent works')
    .addHelpText('after', MORE_RUN)
    .action(async (given: string | undefined, options: Options) => {
      const { readGoal } = await import('../tasks/goal.ts')
      const goal = await readGoal(given, options.file, session.terminal)
      const client = await connect(session, options)
      const serverId = await chooseServer(client, options.server)
      const created = await client.request<CreatedTask>('POST', path`/servers/${serverId}/tasks`, {
        body: { goal },
      })
      const { json, detach } = options
      if (json && detach) return printJson(session, created)
      const [{ followToEnd }, { howToGoOn }] = await Promise.all([
        import('../tasks/outcome.ts'),
        import('../tasks/show.ts'),
      ])
      const task = { id: created.task_id, serverId }
      const said = `Started ${task.id} on ${serverId}.\n`
      if (detach) return stdout.write(said + howToGoOn(task))
      if (!json) await stderr.write(said)
      session.exitCode = await followToEnd(session, client, task, { json })
    })

  withJson(ofTask(add('get <TASK>', 'show one task'))).action(async (id: string, options: Options) => {
    const [, task] = await find(session, id, options)
    if (options.json) return printJson(session, { task })
    const { taskText, howToAnswer } = await import('../tasks/show.ts')
    await stdout.write(taskText(stdout, task))
    if (task.status === 'awaiting_input') await stdout.write(`\n${howToAnswer(task)}`)
  })

  withJson(ofTask(add('answer <TASK> [TEXT]', 'answer the question of a task')))
    .configureOutput({ outputError: explainWords })
    .option('-f, --follow', 'then follow the task to its end')
    .addHelpText('after', MORE_ANSWER)
    .action(async (id: string, text: string | undefined, options: Options) => {
      const [client, task] = await find(session, id, options)
      const { answerTask } = await import('../tasks/answer.ts')
      session.exitCode = await answerTask(session, client, task, text, options)
    })

  withJson(ofTask(add('cancel <TASK>', 'end what the agent does; what it has changed stays'))).action(
    async (id: string, options: Options) => {
      const [client, { serverId }] = await find(session, id, options)
      const target = path`/servers/${serverId}/tasks/${id}/cancel`
      const answer = await client.request<{ task: Task }>('POST', target)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Cancelled ${id}.\n`)
    },
  )

  withJson(
    withControl(
      tasks
        .command('release <TASK>')
        .description('let a task go on that waits in the step "hold" of a scenario; needs the admin token'),
    ),
  ).action(async (id: string, options: Options) => {
    const client = await connectControl(session, options)
    const answer = await client.request<{ task: Task }>('POST', path`/_berth/tasks/${id}/release`)
    if (options.json) return printJson(session, answer)
    await stdout.write(`Released ${id}.\n`)
  })

  ofTask(add('events <TASK>', 'print what the agent did and said'))
    .option('-f, --follow', 'go on with what comes, until the task ends or Ctrl-C')
    .option('--after <SEQ>', 'only what came after this event', wholeNumber)
    .option('--json', 'one line of JSON for each event, for programs')
    .action(async (id: string, options: Options) => {
      const [client, task] = await find(session, id, options)
      const { showEvents } = await import('../tasks/events.ts')
      session.exitCode = await showEvents(session, client, task, options)
    })
}

const ofTask = (command: Command): Command =>
  command.option('--server <SERVER>', 'the server that it is on; found out where it is not given')

async function find(session: Session, id: string, options: Options) {
  const client = await connect(session, options)
  const { findTask } = await import('../tasks/find.ts')
  return [client, await findTask(client, id, options.server)] as const
}

/** Several words without quotes are most likely one text. */
function explainWords(text: string, write: (text: string) => void): void {
  const hint = text.includes('too many arguments') ? 'Put a text of several words in quotes.\n' : ''
  write(text.replace(/^error: /, 'berth: ') + hint)
}

function wholeNumber(given: string): number {
  if (/^\d{1,9}$/.test(given)) return Number(given)
  throw new InvalidArgumentError('Expected the "seq" of an event, a whole number.')
}
