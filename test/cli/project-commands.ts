import { join } from 'node:path'
import { writeWhole } from '../support/files.ts'
import type { Outcome, Served } from './command.ts'

/** `berth projects` for an instance. */
export function projectCommands(berth: () => Served) {
  const projects = (...args: string[]) => berth().run(['projects', ...args])
  return {
    projects,
    json: (...args: string[]) => berth().json('projects', ...args),
    /** Writes files into a folder of the working directory. */
    write(folder: string, files: Record<string, string>): void {
      for (const [path, content] of Object.entries(files))
        writeWhole(join(berth().cwd, folder, path), content)
    },
  }
}

/** The id, the URL and both addresses that `berth projects create` told of. */
export function told({ stdout }: Outcome): { id: string; url: string; addresses: string } {
  const [, id = '', addresses = '', url = ''] =
    /^Created (prj_\w+) [^\n]*\n(?:.* is ready at ((http:\S+) and http:\S+)\n)?/.exec(stdout) ?? []
  return { id, url, addresses }
}
