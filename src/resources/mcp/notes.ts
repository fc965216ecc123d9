import type { ApiOperationId } from '../../contract/operations.ts'

/** Advice for models: when to use an operation, what to expect, and what to do next. */
const NOTES: Partial<Record<ApiOperationId, string>> = {
  'servers.list':
    'Begin here to find the id of a server: nearly every other tool takes one. Newest first, only those that the credential reaches.',
  'servers.create':
    'A server is a workspace of its own in which commands, agents and apps run. It runs at once and costs credits while it runs: look first with servers_list whether there is one. All fields are optional; `task` is a note of what it is for.',
  'servers.get': 'Shows its status (running, sleeping, building), its published URL and what it has used.',
  'servers.update': 'Changes `task`, the note of what it is for, or `region`.',
  'servers.delete':
    'Ends everything that runs on it and removes its files, projects, tasks and builds. There is no way back: ask the person first.',
  'servers.act':
    'stop ends all that runs on it and puts it to sleep, which costs nothing; start wakes it; restart does both. Commands, tasks and builds wake a sleeping server by themselves.',
  'usage.get':
    'Shows whether a server is short of memory, storage or processors, and which ports its programs listen on. processes_list says which of them uses it.',
  'usage.account':
    'Shows how much of the budget is left this month, and which server used how much on which day.',
  'usage.servers': 'Shows which servers are busy, full or idle.',
  'exec.run':
    'Runs `sh -c COMMAND` in the workspace and waits for its end. A command that fails is no error: look at exitCode and stderr, and at `refused`: connections that berth did not let out, each with what would allow it. Standard input is empty unless `stdin` is given. What should go on after the call must be put in the background, with its output sent to a file; for an app use deployments_create or a project. With a progress token the output comes as progress while it runs.',
  'terminals.list':
    'Terminals are for programs that talk to a person: an editor, a debugger, the prompt of a language, a program that asks questions. For a command that ends by itself exec_run is simpler.',
  'terminals.create':
    'For programs that talk to a person, such as vim, python3, gdb or npm init. Without `command` it is a shell. Then use terminals_type and terminals_screen. It runs on between calls, until its program ends or terminals_delete. For a command that ends by itself exec_run is simpler.',
  'terminals.get': 'Its program has ended where exit_code is not null. terminals_screen shows what it shows.',
  'terminals.screen':
    'Shows the rows as a person sees them. Without arguments it is the screen of now. To wait for a program, give `until`, such as `ready in` for a server that starts; `outcome` says whether it came (matched), or timeout, or exited with exit_code. `lines` adds what has scrolled away above.',
  'terminals.type':
    'Types `text` first, then presses `keys`, then waits and shows the screen. A line is run by `keys` ["enter"]: {"text": "ls -l", "keys": ["enter"]}. To wait for the next prompt, end the pattern of `until` with `$`: `[$#] $` for a shell, `>>> $` for Python; it is only looked for in what is new. What is typed is echoed, and matches too: choose a pattern that it does not match. Without `until` it answers when nothing was printed for 250 ms, so a slow command may still run: look again with terminals_screen and `until`. In vim: {"text": "ihello", "keys": ["escape"]}, then {"text": ":wq", "keys": ["enter"]}; let escape be the last key of its call. Leave less by the key q, stop a program with ["ctrl-c"], end input with ["ctrl-d"]. Code of several lines: `paste` true.',
  'terminals.delete': 'Ends its program, and all that it has started and that did not detach.',
  'processes.list':
    'Shows what runs on a server, which ports it listens on, and what started it: look here when something is slow, a port is taken, or a program was left in the background. A sleeping server has none.',
  'processes.delete':
    'Ends a program that was left behind or hangs. Without `signal` it is TERM. Where ended is false the program goes on: KILL ends it in any case. For a terminal use terminals_delete, for a task tasks_cancel.',
  'files.read':
    'Without `path` it lists all files of the workspace; with `path` it gives the content of one. Content that is no UTF-8 text comes with encoding base64. `.git` and `node_modules` are left out of the list unless `all` is "true".',
  'files.write':
    'Creates the file, with its parent directories, or replaces it whole. Paths are relative to the workspace. For bytes that are no text, send base64 and say so in `encoding`.',
  'files.delete': 'A directory is removed with all that is in it.',
  'files.manifest':
    'Size and SHA-256 of files, without their content: tells whether two files, or two trees, are the same. Name the `paths`, or a `directory` to get all below it.',
  'deployments.list': 'Shows what the server has published and whether it answers.',
  'deployments.create':
    'Publishes what is in the workspace and gives its URL: an app where one is found (berth.json, Procfile, package.json, Python, Go and others), else static files. Publishing again keeps the URL. An app that does not come up is an error with the end of its log.',
  'deployments.push':
    'For programs that keep a copy of the files: takes hashes first, and then an archive of what is missing. To change a file, use files_write and then deployments_create.',
  'deployments.delete':
    'Ends what the server publishes; its files stay. The next publication has another URL: ask the person first.',
  'deployments.logs':
    'What the published app printed, and why one did not come up. `since` takes a time or a duration such as 10m; `tail` is the number of lines.',
  'tasks.listAll': 'Those of all servers that the credential reaches, newest first.',
  'tasks.list': 'Newest first. A task whose status is awaiting_input has a `question` for tasks_answer.',
  'tasks.create':
    'An agent works on the goal on its own, on the server. It answers at once with a task_id; follow it with tasks_events and `follow`, or look at it with tasks_get. For a single command, exec_run is quicker.',
  'tasks.get':
    'Shows its status and, when it is over, its `result`. Where the status is awaiting_input, `question` says what the agent wants to know.',
  'tasks.answer': 'For a task whose status is awaiting_input; it goes on with the answer.',
  'tasks.cancel': 'Ends what the agent runs. What it has changed stays.',
  'tasks.events':
    'What the agent did and said, oldest first. With `follow` it waits until the task is over or asks something, and tells what happens as progress. Read on with `after`, the `seq` of the last event that is known.',
  'builds.listAll': 'Those of all servers that the credential reaches, newest first.',
  'builds.list': 'Newest first.',
  'builds.create':
    'Makes a new app from a goal in plain words: plan, scaffold, implement, install, build, publish. It answers at once with a build_id; follow it with builds_logs and `follow`. Builds of a server run one at a time.',
  'builds.get':
    'Shows how far its steps are. A build that failed is completed with `url` null; builds_logs tells why.',
  'builds.logs':
    'What its steps did and printed, and why it failed where it did. With `follow` it waits until the build is over.',
  'projects.list': 'Newest first. projects_listAll lists those of all servers.',
  'projects.create':
    'A project is an app in a directory of its own, `projects/SLUG` in the workspace: blank, from a template (templates_list), a git repository or an archive. It has a URL where `visibility` is "public"; by default it is private, and nobody reaches it. Where there is code, its bring-up begins (`init_run_id`): look with projects_get until init_phase is ready, failed or awaiting_secrets. A blank one waits for code: write it with files_write into its folder, then call projects_init.',
  'projects.listAll': 'Those of all servers that the credential reaches, newest first.',
  'projects.get':
    'Shows its URL (null while it is private) and how far its bring-up is: init_phase ready, failed (projects_logs tells why) or awaiting_secrets (projectSecrets_set).',
  'projects.update':
    'Changes name, description, visibility or lifecycle. It has a URL while it is public; that and the slug never change.',
  'projects.delete': 'Ends its app and removes its files. There is no way back: ask the person first.',
  'projects.cleanup': 'Removes an ephemeral project with its files; a persistent one is refused.',
  'projects.push':
    'For programs that keep a copy of the code: takes hashes first, and then an archive of what is missing. To change a file of a project, use files_write below `projects/SLUG` and then projects_restart, or projects_init if packages or a build have changed.',
  'projects.restart':
    'Starts the app again with the files that are there, without install and build: after files_write in an app that does not watch its files. Look with projects_get until init_phase is ready or failed.',
  'projects.init':
    'Continues a bring-up that waits for variables (with `proceed` without them), else begins a new one with the code that lies in `projects/SLUG`: use it after changing the code.',
  'projects.logs':
    'The last lines that its bring-ups and its app printed: read them to find out why it failed.',
  'secrets.set':
    'Environment variables for all that runs on a server; null removes one. Values never come back in any answer.',
  'projectSecrets.list':
    'Which variables are set, and which the code asks for. Ask the person for the `missing` ones; make none up. Values never come back in any answer.',
  'projectSecrets.set':
    "Environment variables of a project's app; null removes one. It continues a bring-up that waited for them, else restarts the app. Values never come back in any answer.",
  'keys.create': 'The response holds the key itself: give it to the person, and to nobody else.',
  'keys.delete': 'Whoever uses it is refused from then on.',
  'programs.delete':
    'Its tokens end at once. Ask the person first: it may be the program that you speak through.',
  'browsers.delete': 'A person may be using it: ask first.',
  'templates.list': 'What projects_create can start from, with the id that its `template` takes.',
  'webhooks.create': 'The response holds the signing secret. It is shown only this once.',
}

/** Returns the advice on an operation, or undefined if its own description suffices. */
export const noteFor = (operationId: string): string | undefined => NOTES[operationId as ApiOperationId]
