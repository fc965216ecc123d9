/** What stands before the secret of a link that signs a browser in. */
export const LINK_PATH = '/signin/link/'

/** A path as logs may have it: the one kind of path that is a credential loses its secret. */
export function loggedPath(path: string): string {
  return path.toLowerCase().includes(LINK_PATH) ? `${LINK_PATH}…` : path
}
