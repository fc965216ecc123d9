import type { ManifestEntry } from '../../compute/workspace.ts'
import type { FileManifest } from './model.ts'

export type { FileManifest } from './model.ts'

/** Names of directories that are not sent to a server: what is in them can be made again. */
export const GENERATED: ReadonlySet<string> = new Set(['.git', '.berth', 'node_modules'])

/** Matches `.env`, `.env.production` and `.envrc`, which are not sent, but not examples, which have names only. */
export const SECRET_FILE = /^\.env(?!.*\.(?:example|sample|template|dist|defaults)$)/

/** Returns a manifest of entries in the form of the API. */
export function toManifest(entries: readonly ManifestEntry[]): FileManifest {
  const manifest: FileManifest = { files: [], links: [] }
  for (const { kind, ...entry } of entries) {
    if ('target' in entry) manifest.links.push(entry)
    else manifest.files.push(entry)
  }
  return manifest
}

/** The differences between two trees, by content. */
interface ManifestDifference {
  /** Paths of files and links that the other tree lacks, or has with other content, another mode or another target. */
  readonly changed: string[]
  /** Paths that only the other tree has. */
  readonly extra: string[]
}

/** Compares a tree with another one. Sizes of files are not compared: their hashes tell more. */
export function compareManifests({ files, links }: FileManifest, other: FileManifest): ManifestDifference {
  const present = new Map<string, string>()
  for (const file of other.files) present.set(file.path, fileText(file))
  for (const { path, target } of other.links) present.set(path, target)
  const changed: string[] = []
  const compare = (path: string, text: string): void => {
    if (present.get(path) !== text) changed.push(path)
    present.delete(path)
  }
  for (const file of files) compare(file.path, fileText(file))
  for (const { path, target } of links) compare(path, target)
  return { changed, extra: [...present.keys()] }
}

/** Returns a text of a file's content and mode, which no link's target is: it contains a NUL. */
const fileText = ({ sha256, executable }: FileManifest['files'][number]): string =>
  `\0${sha256}${executable ? 'x' : ''}`
