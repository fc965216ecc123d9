import { SourceError } from './errors.ts'
import type { Environment } from './surroundings.ts'

/** The certificates that `SSL_CERT_FILE` names, as PEM, or null without it. @throws SourceError where it cannot be read */
export async function caOf({ SSL_CERT_FILE: path }: Environment): Promise<string | null> {
  if (!path) return null
  try {
    return await Bun.file(path).text()
  } catch {
    throw new SourceError(
      'The file of SSL_CERT_FILE cannot be read. Correct the variable and start berth again.',
    )
  }
}
