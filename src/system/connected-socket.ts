import { loadFindConnectedSocket as loadOnLinux } from './linux/connected-socket.ts'
import type { ConnectedEnd, ConnectedSocket } from './system.ts'

/**
 * Returns a function that asks the kernel for the one established socket with these addresses and ports. It returns null if
 * there is no such socket, and if the kernel cannot be asked.
 */
export const loadFindConnectedSocket: () => (end: ConnectedEnd) => ConnectedSocket | null =
  process.platform === 'darwin' ? () => () => null : loadOnLinux
