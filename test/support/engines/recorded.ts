import { join } from 'node:path'

/** The file of what a Docker engine has responded, by method, path and status. */
export const RESPONSES_FILE = join(import.meta.dir, 'docker-responses.json')

/** A response as it was recorded. `body` has one element a line; what differs from run to run is a word in braces. */
export interface Recorded {
  readonly headers: Readonly<Record<string, string>>
  readonly body: readonly unknown[]
}
