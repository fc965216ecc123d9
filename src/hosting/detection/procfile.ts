import type { LeftOut } from '../app-runtime/plan.ts'
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

/** Returns the processes of a Procfile that do not run: all but `web`, and `release` before it. */
export function processesLeftOut(procfile: Procfile): LeftOut[] {
  const web = procfile.get('web') ?? 'WEB_COMMAND'
  return [...procfile]
    .filter(([name]) => name !== 'web' && name !== 'release')
    .map(([name, command]) => ({
      what: `"${name}" of the Procfile`,
      why: `berth runs "web" alone. To run both, put this into berth.json: {"start": ${JSON.stringify(`${command} & ${web}`)}}`,
    }))
}
