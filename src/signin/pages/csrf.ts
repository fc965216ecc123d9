import { createHmac } from 'node:crypto'

/** The form field that carries the token. */
export const CSRF_FIELD = 'csrf'

/** The token that forms of a session carry: only who has the session's secret can make it, and it tells nothing of it. */
export const csrfToken = (secret: string): string =>
  createHmac('sha256', secret).update('forms').digest('base64url')
