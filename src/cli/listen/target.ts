import { UsageError } from '../../errors.ts'

/**
 * Reads where events are to be forwarded to: a URL, or what is left of one on this machine, as in
 * `localhost:3000/hook`, `3000/hook` and `3000`.
 *
 * @throws UsageError
 */
export function readTarget(given: string): string {
  const url = URL.parse(written(given))
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.port === '0') {
    throw new UsageError(
      `--forward-to must look like http://localhost:3000/hook, localhost:3000/hook or 3000/hook, got ${JSON.stringify(given)}.`,
    )
  }
  if (url.username !== '' || url.password !== '')
    throw new UsageError('--forward-to must have no credentials in the URL.')
  url.hash = ''
  return url.href
}

function written(given: string): string {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(given)) return given
  return /^:?\d+(?:\/|$)/.test(given) ? `http://localhost:${given.replace(/^:/, '')}` : `http://${given}`
}
