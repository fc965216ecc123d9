import type { Documents } from './documents.ts'
import { PackageError } from './problem.ts'
import type { DocumentSource, Wanted } from './wanted.ts'

/** Returns the source of a document that passes unchanged. Every byte is a character of its text, since some are binary. */
export const plainSource = (path: string): DocumentSource => ({
  key: path.slice(1),
  path,
  accept: '*/*',
  package: null,
  read: ({ body }) => ({ text: Buffer.from(body).toString('latin1'), dists: {} }),
})

/** Returns a request for a document that passes unchanged. @param source of `plainSource`, if it lists files */
export const plainDocument = (path: string, type = 'text/plain', source = plainSource(path)): Wanted => ({
  kind: 'document',
  source,
  present: (text) => ({ body: new Uint8Array(Buffer.from(text, 'latin1')), type }),
})

/**
 * Returns a document that passes unchanged; null if the registry does not have it.
 *
 * @throws PackageError if the registry is unreachable
 */
export async function plainText(documents: Documents, path: string): Promise<string | null> {
  try {
    return Buffer.from(await documents.get(plainSource(path)), 'latin1').toString('utf8')
  } catch (error) {
    if (error instanceof PackageError && !error.unreachable) return null
    throw error
  }
}
