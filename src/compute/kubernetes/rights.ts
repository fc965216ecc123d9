/** What berth does in the namespace of its servers, by resource: the rules of its Role. */
export const CLUSTER_RIGHTS: Readonly<Record<string, readonly string[]>> = {
  pods: ['create', 'get', 'list', 'watch', 'delete'],
  // A WebSocket begins with GET; from 1.35 on a cluster wants the right to create too.
  'pods/exec': ['create', 'get'],
  persistentvolumeclaims: ['create', 'get', 'list', 'watch', 'delete'],
  events: ['list'],
}
