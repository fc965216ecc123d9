import { UsageError } from '../../errors.ts'
import type { Client } from '../client.ts'
import { action, call, jsonLines, type Noun, rows } from '../command.ts'
import type { Named } from '../names.ts'
import { flag, textOption, wholeNumber } from '../options.ts'
import { showWhile } from '../status-line.ts'
import { findTask, listTasks } from '../tasks/find.ts'
import { answerHint, goalSummary, nextStepsText, TASK_COLUMNS, taskText } from '../tasks/show.ts'

const CODES =
  'The exit code is 0 when the task is completed, 1 where it failed, 3 where it waits for an answer, 4 where it was cancelled.'

/** Several words without quotes are probably one text. */
const hints = { 'too many arguments': 'Put a text of several words in quotes.\n' }

const server = textOption('SERVER', 'the server that it is on; found out where it is not given')
const newOn = textOption('SERVER', 'the server it is for; needed where there are several')
const file = textOption('FILE', 'the goal is the text of this file; - is standard input')

/** `berth tasks` */
export const tasksNoun: Noun = {
  name: 'tasks',
  summary: 'give goals to the agent of a server, follow and answer it',
  description:
    'Gives goals to the agent of a server, follows and answers it. Plain "berth tasks" lists the tasks there are.',
  names: [{ placeholder: 'TASK', words: null, list: listNamed }],
  commands: [
    action({
      usage: 'list',
      operations: ['tasks.listAll', 'tasks.list'],
      description: 'list tasks, newest first',
      access: 'api',
      options: { server: textOption('SERVER', 'those of one server only') },
      async run({ options, connect, idOf, print }) {
        const found = await listTasks(await connect(), await idOf('SERVER', options.server))
        await print(
          { tasks: found },
          rows('tasks', TASK_COLUMNS, 'No tasks yet. Give a goal with "berth tasks run".\n'),
        )
      },
    }),
    action({
      usage: 'run [GOAL]',
      description: 'give a goal and follow the agent to its end',
      access: 'api',
      hints,
      options: {
        server: newOn,
        file,
        follow: flag('follow it (the default)', { short: 'f', conflicts: 'detach' }),
        detach: flag('return at once, while the agent works', { short: 'd' }),
      },
      help: `
What the agent does goes to stderr while it does it, the result to stdout. At a terminal its questions are put to
you; elsewhere a question ends the command, and "berth tasks answer" lets the task go on. Ctrl-C leaves the task going.
${CODES}

Examples:
  berth tasks run "Add a health check to the app"
  berth tasks run --file goal.md --server srv_…
  echo "run: bun test" | berth tasks run - > result.txt
`,
      async run({ session, args: [given], options, connect, server, print }) {
        const { readGoal } = await import('../tasks/goal.ts')
        const goal = await readGoal(given, options.file, session.context)
        const client = await connect()
        const serverId = await server()
        const created = await client.call('tasks.create', { params: { serverId }, body: { goal } })
        const task = { id: created.task_id, serverId }
        const started = `Started ${task.id} on ${serverId}.\n`
        if (options.detach) return print(created, () => started + nextStepsText(task))
        if (!options.json) await session.context.stderr.write(started)
        const { followToEnd } = await import('../tasks/follow.ts')
        return followToEnd(session, client, task, { json: options.json })
      },
    }),
    call('tasks.create', {
      usage: 'create <GOAL>',
      description: 'give a goal and return at once, while the agent works',
      hints,
      options: { server: newOn },
      async request([goal], _, { server }) {
        if (goal.trim() === '') throw new UsageError('The goal is empty.')
        const serverId = await server()
        return { params: { serverId }, body: { goal } }
      },
      id: ({ task_id: id }) => id,
      show: ({ task_id: id }) => `Started ${id}.\n${nextStepsText({ id })}`,
    }),
    action({
      usage: 'get [TASK]',
      operations: ['tasks.get'],
      description: 'show one task',
      access: 'api',
      options: { server },
      async run({ args: [id], options, connect, idOf, print }) {
        const task = await findTask(await connect(), id, await idOf('SERVER', options.server))
        await print({ task }, (_, { out }) => {
          const shown = taskText(out, task)
          return task.status === 'awaiting_input' ? `${shown}\n${answerHint(task)}` : shown
        })
      },
    }),
    action({
      usage: 'answer <TASK> [TEXT]',
      operations: ['tasks.answer'],
      description: 'answer the question of a task',
      access: 'api',
      hints,
      options: { server, follow: flag('then follow the task to its end', { short: 'f' }) },
      help: `
Without TEXT the answer is asked for; - takes it from standard input. With --follow:
${CODES}
`,
      async run({ session, args: [id, given], options, connect, idOf, print }) {
        const client = await connect()
        const task = await findTask(client, id, await idOf('SERVER', options.server))
        const { answerTask } = await import('../tasks/follow.ts')
        return answerTask({ session, client, task, given, options, print })
      },
    }),
    action({
      usage: 'cancel [TASK]',
      operations: ['tasks.cancel'],
      description: 'end what the agent does; what it has changed stays',
      access: 'api',
      options: { server },
      async run({ session: { context }, args: [id], options, connect, idOf, print }) {
        const client = await connect()
        const { id: taskId, serverId } = await findTask(client, id, await idOf('SERVER', options.server))
        const response = await showWhile(context.stderr, `cancel ${taskId}`, () =>
          client.call('tasks.cancel', { params: { serverId, taskId } }),
        )
        await print(response, () => `Cancelled ${taskId}.\n`)
      },
    }),
    call('control.tasks.release', {
      usage: 'release <TASK>',
      description: 'let a task go on that waits in the step "hold" of a scenario; needs the admin token',
      request: ([taskId]) => ({ params: { taskId } }),
      show: (_, { args: [id] }) => `Released ${id}.\n`,
    }),
    action({
      usage: 'events [TASK]',
      operations: ['tasks.events'],
      description: 'print what the agent did and said',
      access: 'api',
      json: jsonLines('event'),
      options: {
        server,
        follow: flag('continue with new ones, until the task ends or Ctrl-C', { short: 'f' }),
        after: wholeNumber('SEQ', 'only what came after this event', {
          most: 999_999_999,
          expected: 'the "seq" of an event, a whole number',
        }),
      },
      async run({ session, args: [id], options, connect, idOf }) {
        const client = await connect()
        const task = await findTask(client, id, await idOf('SERVER', options.server))
        const { showEvents } = await import('../tasks/follow.ts')
        return showEvents(session, client, task, options)
      },
    }),
  ],
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const all = await listTasks(client, undefined, signal)
  return all.map(({ id, status, goal }) => ({ id, description: `${status}, ${goalSummary(goal)}` }))
}
