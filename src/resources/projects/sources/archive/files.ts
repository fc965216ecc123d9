import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TemplateFile } from '../../../templates/files.ts'
import type { SourceLimits } from '../limits.ts'
import { TreeWriter } from './writer.ts'

/** Writes given files into a fresh folder of a staging folder and returns it. @throws SourceError */
export async function writeFiles(
  files: Iterable<TemplateFile> | AsyncIterable<TemplateFile>,
  staging: string,
  limits: SourceLimits,
): Promise<string> {
  const root = join(staging, 'tree')
  mkdirSync(root, { mode: 0o700 })
  const writer = new TreeWriter(root, limits)
  for await (const { path, bytes, mode } of files) {
    await writer.file({ name: path, size: bytes.length, mode }, once(bytes))
  }
  return root
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
