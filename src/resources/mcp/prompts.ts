import type { Prompt } from '@modelcontextprotocol/server'

/** A prompt that a person may pick in a host, and the text that it sends to the model. */
interface BerthPrompt {
  readonly listed: Prompt
  text(given: Readonly<Record<string, string>>): string
}

const PROMPTS: readonly BerthPrompt[] = [
  {
    listed: {
      name: 'deploy_app',
      title: 'Put an app behind a URL',
      description: 'Deploys from a git repository or a template, or what lies on a server, and checks it.',
      arguments: [
        { name: 'source', description: 'URL of a git repository, or the id of a template.', required: false },
        { name: 'serverId', description: 'The server to use; else one is found or made.', required: false },
      ],
    },
    text: ({ source, serverId }) =>
      [
        'Put an app behind a URL with berth.',
        serverId
          ? `Use the server ${serverId}.`
          : 'Look with servers_list for a server that fits, or make one with servers_create.',
        source
          ? `The app comes from ${JSON.stringify(source)}: call projects_create with it, as a source of type "git" where it is a repository, else as "template", with "visibility": "public". Then call projects_get with "follow": true until init_phase is ready, failed or awaiting_secrets.`
          : "The app lies in the server's workspace: look at it with files_read, then call deployments_create.",
        'Where variables are missing, ask me for them and set them with projectSecrets_set; make none up.',
        'Where it fails, read the log (projects_logs, or the message of the error), say what is wrong, and fix it where that is clear.',
        'In the end tell me the URL, and what answers there.',
      ].join('\n'),
  },
  {
    listed: {
      name: 'find_out_why_it_failed',
      title: 'Find out why an app or a build failed',
      description: 'Reads the log of a project or a build, names the cause, and proposes what to do.',
      arguments: [
        { name: 'projectId', description: 'The project whose app does not come up.', required: false },
        { name: 'serverId', description: 'The server of the build.', required: false },
        {
          name: 'buildId',
          description: 'The build that failed; else the newest of the server.',
          required: false,
        },
      ],
    },
    text: ({ projectId, serverId, buildId }) =>
      [
        'Find out why it failed, with berth.',
        projectId
          ? `Call projects_get for ${projectId}: init_phase says how far it came. Then read projects_logs with "tail": 500.`
          : serverId
            ? `${buildId ? `Look at the build ${buildId}` : 'Look with builds_list for the newest build whose url is null'} on the server ${serverId}: builds_get says which step was not done, builds_logs with "tail": 500 why.`
            : 'Look with projects_listAll for a project whose init_phase is failed, and with builds_list for a completed build whose url is null, and ask me which is meant where there are several.',
        'Quote the lines that show the cause. Look at the files concerned with files_read where that helps.',
        'Say what is wrong and what would fix it. Change nothing before I agree.',
      ].join('\n'),
  },
  {
    listed: {
      name: 'run_task',
      title: 'Give an agent a goal and follow it',
      description: 'Starts a task on a server, follows it to its end, and passes its questions on.',
      arguments: [
        { name: 'goal', description: 'What is to be reached, in plain words.', required: true },
        { name: 'serverId', description: 'The server to use; else one is found or made.', required: false },
      ],
    },
    text: ({ goal, serverId }) =>
      [
        'Have an agent of berth reach this goal:',
        goal ?? '',
        '',
        serverId
          ? `Use the server ${serverId}.`
          : 'Look with servers_list for a server that fits, or make one with servers_create.',
        'Call tasks_create with the goal, then tasks_events with "follow": true.',
        'Where the task asks something (status awaiting_input), ask me, pass my answer on with tasks_answer, and follow it again with "after".',
        'In the end tell me what came of it, and which files have changed.',
      ].join('\n'),
  },
]

/** The entries of `prompts/list`. */
export const LISTED_PROMPTS: readonly Prompt[] = PROMPTS.map(({ listed }) => listed)

/** A prompt's text with its arguments filled in, or the name of a missing argument. */
type FilledPrompt = { text: string; description: string } | { missing: string } | null

/** Fills in a prompt's arguments. Returns null if there is no such prompt. */
export function fillPrompt(name: string, given: Readonly<Record<string, string>>): FilledPrompt {
  const prompt = PROMPTS.find(({ listed }) => listed.name === name)
  if (prompt === undefined) return null
  const missing = prompt.listed.arguments?.find((one) => one.required && !given[one.name])
  if (missing) return { missing: missing.name }
  return { text: prompt.text(given), description: prompt.listed.description ?? '' }
}
