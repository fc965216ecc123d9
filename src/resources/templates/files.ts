import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'

/** A file of a template. */
export interface TemplateFile {
  /** Relative to the project's directory, with `/` between names. */
  readonly path: string
  readonly bytes: Uint8Array
  /** Permission bits: 0o755 of a script, 0o644 of everything else. */
  readonly mode: number
}

/** Beside this file in the source tree, and beside the executable's code inside it (see scripts/compile.ts). */
const apps = join(import.meta.dir, 'apps')

/**
 * Reads all files of a template, sorted by path. An executable keeps no permission bits of what is
 * embedded in it, so that a script is known by its first line.
 *
 * @param id the id of a template that exists
 */
export async function readTemplate(id: string): Promise<TemplateFile[]> {
  const root = join(apps, id)
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  const files = await Promise.all(
    paths.map(async (path) => {
      const bytes = await readFile(path)
      return { path: relative(root, path), bytes, mode: isScript(bytes) ? 0o755 : 0o644 }
    }),
  )
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

const isScript = (bytes: Uint8Array): boolean => bytes[0] === 0x23 && bytes[1] === 0x21
