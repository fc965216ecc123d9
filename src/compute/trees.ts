/** Trees of files on this machine: lists, copies and unpacks them, and follows no link out of them. */
export { copyTree } from './local/copy-tree.ts'
export { DirectoryChain } from './local/directories.ts'
export { Listing } from './local/listing.ts'
export { RAW_NAME, RAW_TARGET } from './local/pack-tree.ts'
export { childPath, pinRoot } from './local/pinned.ts'
export { isTemporary } from './local/temporary-file.ts'
export { LocalWorkspace } from './local/workspace.ts'
export { MAX_PATH_BYTES } from './local/workspace-path.ts'

/** Loads what unpacks an archive into a tree. */
export const loadUnpackTree = () => import('./local/unpack-tree.ts')
