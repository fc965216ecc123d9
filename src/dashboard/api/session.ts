/**
 * Loads the page again if the session is over, which leads to the sign-in and back. A 401 alone does not tell: a fault may
 * answer in place of the API.
 */
export async function leaveIfSignedOut(): Promise<void> {
  const page = await fetch(location.pathname, { redirect: 'manual' }).catch(() => null)
  if (page?.type === 'opaqueredirect') location.reload()
}
