import type { SourceDirectory } from './source.ts'

/** The commands of a Procfile by process type, in its order. */
export type Procfile = ReadonlyMap<string, string>

/** Reads a directory's Procfile. Skips invalid lines; of two lines of a name the first counts. */
export async function readProcfile(directory: SourceDirectory): Promise<Procfile> {
  const found = new Map<string, string>()
  for (const line of ((await directory.text('Procfile')) ?? '').split(/\r?\n/)) {
    const [, name, command] = /^([A-Za-z0-9_-]+)\s*:\s*(\S.*)$/.exec(line.trim()) ?? []
    if (name !== undefined && command !== undefined && !found.has(name)) found.set(name, command)
  }
  return found
}
