/**
 * The groups of operations, in the order in which documents show them. An operation takes one of
 * these as its tag, so that no group goes without a description.
 */
export const TAGS = {
  Servers: 'Sized compute servers: provision, look at, control and remove them, and run commands.',
  Files: "The files of a server's workspace.",
  Deployments: "A server's workspace, published under a URL.",
  Tasks: 'Goals that an agent works on inside a server.',
  Builds: 'Structured builds: plan, scaffold, implement, install, build, deploy.',
  Projects: 'Workspaces with an app inside a server, each with a slug and a URL of its own.',
  Secrets: 'Environment variables of servers and projects; their values are never read back.',
  'API keys': 'The keys of the account. They need a key that reaches the whole account.',
  Webhooks: 'Subscriptions to signed events. They need a key that reaches the whole account.',
} as const

/** A group of operations. */
export type Tag = keyof typeof TAGS
