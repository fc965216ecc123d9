/** What a key reaches (specification, "Authentication" 5). */
export interface Scope {
  /** Ids of servers; null for all of the account's. */
  readonly servers: ReadonlySet<string> | null
  /** Ids of projects; null for all on the servers that it reaches. */
  readonly projects: ReadonlySet<string> | null
}

/** Who a request comes from: the account behind its credential, and what that reaches. */
export interface Caller extends Scope {
  readonly accountId: string
  /** Id of the API key, or of the grant behind the access token. */
  readonly credentialId: string
}

/** Whether a key does not reach its whole account, and so may do nothing account-level. */
export const isScoped = ({ servers, projects }: Scope): boolean => servers !== null || projects !== null

/** Whether a server of the account is within a key's reach: only the list of servers counts. */
export const mayReachServer = ({ servers }: Scope, serverId: string): boolean =>
  servers === null || servers.has(serverId)

/** Whether a project on a server of the account is within a key's reach: both lists must allow it. */
export const mayReachProject = (scope: Scope, project: { id: string; serverId: string }): boolean =>
  mayReachServer(scope, project.serverId) && (scope.projects === null || scope.projects.has(project.id))

/** Stands for an account itself where berth acts for it by itself. */
export const accountCaller = (accountId: string): Caller => ({
  accountId,
  credentialId: '',
  servers: null,
  projects: null,
})
