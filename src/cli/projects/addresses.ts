import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'

/** Matches host names of this machine. */
const LOCAL = /^(?:127(?:\.\d+){3}|\[::1\]|(?:.*\.)?localhost)$/

/**
 * Returns the addresses of a public project for a person: `http://127.0.0.1:4800/ and http://shop.localhost:4747/`. Apps on
 * other servers reach it at the second one. It is missing if berth is not on this machine.
 */
export function addressesOf({ baseUrl }: Pick<Client, 'baseUrl'>, { url, slug }: Project): string {
  const own = new URL(baseUrl)
  if (!LOCAL.test(own.hostname)) return String(url)
  own.hostname = `${slug}.localhost`
  return `${url} and ${own.origin}/`
}

/** Reports whether a project is a worker, which has no URL. */
export const isWorker = ({ app, workers }: Project): boolean =>
  workers.length > 0 && app?.start === null && app.serves === null
