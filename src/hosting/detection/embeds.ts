import { posix } from 'node:path'
import type { SourceDirectory } from './source.ts'

/** Directories into which front ends are built. */
const OUTPUT = '(?:dist|build|out|www|public|\\.output)'

/** Most directories between an app and a front end of it. */
const NEAR = 2

/**
 * Returns the directories, relative to the source, of packages whose built files a program names, such as `../client/dist`
 * or `path.join(root, 'client', 'dist')`.
 *
 * @param directory the program's
 */
export function findEmbedded(directory: SourceDirectory, code: string): string[] {
  return [...directory.source.files]
    .filter((path) => path.endsWith('/package.json'))
    .map((path) => path.slice(0, -'/package.json'.length))
    .filter((path) => {
      const way = posix.relative(`/${directory.path}`, `/${path}`).split('/')
      const name = way.at(-1) ?? ''
      if (way.length > NEAR || ['', '..'].includes(name)) return false
      return new RegExp(`(?<![\\w-])${RegExp.escape(name)}['"\`\\s,/]+${OUTPUT}(?![\\w-])`).test(code)
    })
}
