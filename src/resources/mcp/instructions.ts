/** What a host tells a model of berth as a whole. */
export const INSTRUCTIONS = `berth provisions servers: workspaces in which commands, agents and apps run on this machine.
Find a server with servers_list or make one with servers_create; nearly all tools take its id as serverId.
Use exec_run for commands and files_read and files_write for files. To put an app behind a URL use deployments_create for a workspace, or a project (projects_create) for code from a template or a git repository. tasks_create gives a goal to an agent, builds_create has a new app made; both go on in the background: follow them with tasks_events and builds_logs and "follow": true.
A tool that fails answers with {"error", "message", "status"}; the message names the cause and the remedy. not_found also means that the credential does not reach it. Ask the person before anything is deleted.`
