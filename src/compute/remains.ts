/** What servers leave when berth is killed: control groups, mounts, open ports, users and directories. */

export { isServerUser } from './bubblewrap/server-users.ts'
export { hasEngineNotes } from './engine/owner.ts'
export {
  ABANDONED_MS,
  allDataDirectoryGroups,
  type DataDirectoryGroup,
  removeGroups,
} from './limits/groups.ts'
export { findOccupants } from './local/mount-tables.ts'
export { portsOf } from './local/ports.ts'
export { CACHES, dataMarkerOf, ServerDirectories, serverMarkerOf } from './local/server-directories.ts'
export { STAGING } from './local/staging.ts'
