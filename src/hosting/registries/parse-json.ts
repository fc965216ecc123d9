import { PackageError } from './problem.ts'

/** Parses a registry's response. @throws PackageError if it is no JSON */
export function parseJson(body: Uint8Array, url: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    throw new PackageError(`What the registry sent for ${url} is no JSON.`, 424)
  }
}
