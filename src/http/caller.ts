/** The resources that a key reaches (specification, "Authentication" 5). */
export interface Scope {
  /** Ids of servers; null for all servers of the account. */
  readonly servers: ReadonlySet<string> | null
  /** Ids of projects; null for all projects on the reachable servers. */
  readonly projects: ReadonlySet<string> | null
}

/** The sender of a request: the account and the scope of its credential. */
export interface Caller extends Scope {
  readonly accountId: string
  /** The id of the API key, of the grant of the access token, or of the browser's session. */
  readonly credentialId: string
  /** The id of the API key that began the session, which ends with it. */
  readonly parentId?: string | undefined
  /** Whether it is a browser's session that has the instance's rights: it may use the control API. */
  readonly isAdmin?: boolean
}

/** Reports whether a key does not reach its whole account. Such a key is refused by account-level operations. */
export const isScoped = ({ servers, projects }: Scope): boolean => servers !== null || projects !== null

/** Reports whether a key reaches a server of its account. Only the list of servers counts. */
export const mayReachServer = ({ servers }: Scope, serverId: string): boolean =>
  servers === null || servers.has(serverId)

/** Reports whether a key reaches a project of its account. Both lists must allow it. */
export const mayReachProject = (scope: Scope, project: { id: string; serverId: string }): boolean =>
  mayReachServer(scope, project.serverId) && (scope.projects === null || scope.projects.has(project.id))

/** Returns a caller for work that berth does on behalf of an account. */
export const accountCaller = (accountId: string): Caller => ({
  accountId,
  credentialId: '',
  servers: null,
  projects: null,
})
