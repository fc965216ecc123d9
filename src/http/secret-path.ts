/** The path of a link that signs a browser in, up to its secret. */
export const LINK_PATH = '/signin/link/'

/** Returns a path for logs. The secret of a sign-in link is removed. */
export function pathForLogs(path: string): string {
  return path.toLowerCase().includes(LINK_PATH) ? `${LINK_PATH}…` : path
}
