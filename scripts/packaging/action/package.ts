import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fill, type Release } from '../release.ts'

/** Writes the repository of the GitHub Action, which has install.sh in it. */
export function packageAction({ owner, version, out }: Release): void {
  const directory = join(out, 'repositories/setup-berth')
  mkdirSync(join(directory, 'report'), { recursive: true })
  const write = (from: string, to: string): void => {
    const template = readFileSync(join(import.meta.dir, from), 'utf8')
    writeFileSync(join(directory, to), fill(template, { owner, version }))
  }
  write('action.yml', 'action.yml')
  write('setup.sh', 'setup.sh')
  write('report.yml', 'report/action.yml')
  write('report.sh', 'report/report.sh')
  write('README.md', 'README.md')
  cpSync(join(out, 'install.sh'), join(directory, 'install.sh'))
}
