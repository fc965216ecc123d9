import type { ApiOperationId } from '../../contract/operations.ts'

/** Advice for models: when to use an operation, what to expect, and what to do next. */
const NOTES: Partial<Record<ApiOperationId, string>> = {
  'servers.list': 'Begin here to find the id of a server, which nearly every other tool takes. Newest first.',
  'servers.create':
    'A workspace for commands, agents and apps. It costs credits while it runs: look first whether servers_list has one. `task` is a note of what it is for.',
  'servers.get': 'Shows its status (running, sleeping, building), its published URL and what it has used.',
  'servers.update': 'Changes `task`, the note of what it is for, or `region`.',
  'servers.delete':
    'Ends all on it and removes its files, projects, tasks and builds. There is no way back: ask the person first.',
  'servers.act':
    'stop ends all that runs on it and puts it to sleep, which costs nothing; start wakes it. Commands, tasks and builds wake it by themselves.',
  'usage.get':
    'Whether a server is short of memory, storage or processors, and which ports its programs listen on.',
  'usage.account':
    'Shows how much of the budget is left this month, and which server used how much on which day.',
  'usage.servers': 'Which servers are busy, full or idle.',
  'exec.run':
    'Runs `sh -c COMMAND` in the workspace and waits for its end, 45 s at most: then `status` is running, with the output so far and an `executionId` for executions_output. A command that fails is no error: look at exitCode, stderr and `refused` (connections that berth did not let out). Standard input is empty unless `stdin` is given. What should run on from the start: `detach`; an app: deployments_create or a project.',
  'executions.list': 'Those of exec_run with `detach`, and those that took longer than 45 s.',
  'executions.get': 'Whether it runs, and its exitCode if it has exited.',
  'executions.output':
    'What it printed, in order. Read on with `after`: the last `next`. With `follow` it waits up to 45 s for more; the end is where execution.status is not running.',
  'executions.input': 'Only if it was started with `openStdin`.',
  'executions.delete':
    'Ends it and what it has started, and keeps its output; removes the record of one that has ended.',
  'terminals.list': 'For programs that talk to a person; for a command that ends by itself use exec_run.',
  'terminals.create':
    'For programs that talk to a person, such as vim, python3 or npm init; without `command` a shell. Then use terminals_type and terminals_screen.',
  'terminals.get': 'Its program has ended where exit_code is not null. terminals_screen shows what it shows.',
  'terminals.screen':
    'Shows the rows as a person sees them, at once or, with `until`, when a program has shown something, such as `ready in`; `outcome` is matched, timeout or exited.',
  'terminals.type':
    'Types `text`, presses `keys`, waits and shows the screen: {"text": "ls -l", "keys": ["enter"]} runs a line. To wait for the next prompt, end `until` with `$`, such as `[$#] $`. Without `until` it responds when nothing was printed for 250 ms. In vim let escape be the last key of its call. Code of several lines: `paste` true.',
  'terminals.delete': 'Ends its program, and all that it has started and that did not detach.',
  'processes.list':
    'What runs on a server, on which ports, and what started it: for what is slow, or a port that is taken.',
  'processes.delete':
    'Without `signal` it is TERM. Where ended is false the program goes on: KILL ends it in any case. For a terminal use terminals_delete, for a task tasks_cancel.',
  'files.read':
    'Without `path` it lists files, with `path` it gives the content of one; bytes that are not UTF-8 come with encoding base64.',
  'files.write':
    'Creates the file, with its parent directories, or replaces it whole. Paths are relative to the workspace. Bytes that are no text: base64, with `encoding`.',
  'files.delete': 'A directory is removed with all that is in it.',
  'files.manifest':
    'Size and SHA-256 of files, without their content. Name the `paths`, or a `directory` to get all below it.',
  'deployments.list': 'Shows what the server has published and whether it answers.',
  'deployments.create':
    'Publishes what is in the workspace and gives its URL: an app where one is found, else static files. Publishing again keeps the URL. An app that does not come up is an error with the end of its log. After 45 s `status` is starting, and it goes on: deployments_logs with `follow` tells the end.',
  'deployments.push':
    'For programs that keep a copy of the files. To change a file, use files_write and then deployments_create.',
  'deployments.delete':
    'Ends what the server publishes; its files stay. The next publication has another URL: ask the person first.',
  'deployments.logs':
    'What the published app printed, and why one did not come up. With `follow` it waits for the end of a publication: `status` is live, failed, or starting after 45 s.',
  'tasks.listAll': 'Those of all servers, newest first.',
  'tasks.list': 'Newest first. A task whose status is awaiting_input has a `question` for tasks_answer.',
  'tasks.create':
    'An agent works on the goal on its own, on the server. It responds at once: tasks_events with `follow`. A single command: exec_run.',
  'tasks.get':
    'Shows its status and, when it is over, its `result`. Where the status is awaiting_input, `question` says what the agent wants to know.',
  'tasks.answer': 'For a task whose status is awaiting_input; it goes on with the answer.',
  'tasks.cancel': 'What it has changed stays.',
  'tasks.events':
    'What the agent did and said, oldest first. With `follow` it waits until the task is over or asks something, 45 s at most. Read on with `after`: the last `seq`.',
  'builds.listAll': 'Those of all servers, newest first.',
  'builds.list': 'Newest first.',
  'builds.create':
    'Makes a new app from a goal in plain words, and publishes it. It responds at once: builds_logs with `follow`. Builds of a server run one at a time.',
  'builds.get':
    'Shows how far its steps are. A build that failed is completed with `url` null; builds_logs tells why.',
  'builds.logs':
    'What its steps did and printed, and why it failed where it did. With `follow` it waits until the build is over, 45 s at most.',
  'projects.list': 'Newest first.',
  'projects.create':
    'An app in a directory of its own, `projects/SLUG` in the workspace: blank, from a template (templates_list), a git repository or an archive. It has a URL where `visibility` is "public"; by default it is private. Where there is code, its bring-up begins: projects_get with `follow`. A blank one waits for code: files_write into its folder, then projects_init.',
  'projects.detect':
    'Shows how the app of a source would be run, and why; runs nothing. `problem` says what is missing.',
  'projects.listAll': 'Those of all servers, newest first.',
  'projects.get':
    'Shows its URL (null while it is private) and how far its bring-up is: init_phase ready, failed (projects_logs tells why) or awaiting_secrets (projectSecrets_set). With `follow` it waits for one of these, 45 s at most.',
  'projects.update':
    'Changes name, description, visibility or lifecycle. It has a URL while it is public; that and the slug never change.',
  'projects.delete': 'Ends its app and removes its files. There is no way back: ask the person first.',
  'projects.cleanup': 'Removes an ephemeral project with its files; a persistent one is refused.',
  'projects.push':
    'For programs that keep a copy of the code. To change a file: files_write below `projects/SLUG`, then projects_restart, or projects_init if packages have changed.',
  'projects.restart':
    'Starts the app again without install and build: after files_write in an app that does not watch its files. Then projects_get with `follow`.',
  'projects.init':
    'Continues a bring-up that waits for variables (with `proceed` without them), else begins a new one with the code in `projects/SLUG`. With `follow` it waits as projects_get does.',
  'projects.logs': 'The last lines that its bring-ups and its app printed: why it failed.',
  'secrets.set':
    'Environment variables for all that runs on a server; null removes one. No response has the values.',
  'projectSecrets.list':
    'Which variables are set, and which the code asks for. Ask the person for the `missing` ones; make none up.',
  'projectSecrets.set':
    "Environment variables of a project's app; null removes one. It continues a bring-up that waited for them, else restarts the app.",
  'keys.create': 'The response holds the key itself: give it to the person, and to nobody else.',
  'keys.delete': 'Programs that use it are refused from then on.',
  'account.get': 'Shows its plan, and what is left of the budget.',
  'programs.delete':
    'Its tokens end at once. Ask the person first: it may be the program that you speak through.',
  'browsers.delete': 'A person may be using it: ask first.',
  'templates.list': 'What projects_create can start from, with the id that its `template` takes.',
  'webhooks.create': 'The response holds the signing secret. It is shown only this once.',
}

/** Returns the advice on an operation, or undefined if its own description suffices. */
export const noteFor = (operationId: string): string | undefined => NOTES[operationId as ApiOperationId]

/** Shorter descriptions of arguments that many tools have, or that the API describes at length. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  env: 'Environment variables.',
  follow: 'Wait for the end or for more, at most 45 s.',
  keys: 'Pressed after the text: enter, tab, space, escape, backspace, delete, up, down, left, right, home, end, pageup, pagedown, f1 to f12, a character; with ctrl-, alt- or shift- before them.',
  lines: 'Rows above the screen to include.',
  openStdin: 'With `detach`: keep standard input open for executions_input.',
  paste: 'Whether the text is pasted, as one piece.',
  quiet_ms: 'Respond when nothing was printed for so long.',
  since: 'Only lines since then: a time (RFC 3339), or a duration such as `10m`.',
  tail: 'Lines from the end; 200 by default, all with `since`.',
  timeout_ms: 'Respond then in any case; 10000 by default.',
  timeoutMs: 'End the command after this time; 10 minutes by default, with `detach` never.',
  until: 'Respond when this is shown: a regular expression (RE2), matched line by line.',
}

/** Returns the description of an argument, or undefined if its own suffices. */
export const argumentNote = (name: string): string | undefined => ARGUMENTS[name]
