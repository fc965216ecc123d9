import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { release } from './facts.ts'

/** The repository of the GitHub Action. */
export const action = join(release, 'repositories/setup-berth')

interface ActionFile {
  readonly inputs: Record<string, { default: string }>
  readonly runs: { readonly steps: readonly { run?: string; env?: Record<string, string> }[] }
}

/**
 * Returns a script that carries out the shell steps of the composite action in a directory, as a runner of GitHub does: each by
 * `sh -e`, with the inputs in place of their expressions, and with what the steps before have put into GITHUB_PATH and
 * GITHUB_ENV.
 *
 * @param place where the job finds the files of the action
 */
export function actionScript(
  directory: '.' | 'report',
  inputs: Record<string, string>,
  place = action,
): string {
  const text = readFileSync(join(action, directory, 'action.yml'), 'utf8')
  const { runs, inputs: declared } = parse(text) as ActionFile
  const filledIn = (expression: string): string =>
    expression.replaceAll(
      /\$\{\{ inputs\.([\w-]+) \}\}/g,
      (_, name: string) => inputs[name] ?? declared[name]?.default ?? '',
    )
  return runs.steps
    .flatMap(({ run, env = {} }) => {
      if (run === undefined) return []
      const given = { GITHUB_ACTION_PATH: join(place, directory), ...env }
      const set = Object.entries(given).map(([name, value]) => `${name}=${filledIn(value)}`)
      return [stepScript(shellQuote(['env', ...set, 'sh', '-e', '-c', run]))]
    })
    .join('')
}

/** Returns a script that carries out a command in the environment that the steps before it have set. */
export const stepScript = (command: string): string => `
while IFS= read -r line; do PATH=$line:$PATH; done <"$GITHUB_PATH"
while IFS= read -r line; do export "$line"; done <"$GITHUB_ENV"
${command}
`

/** Returns the lines of a job that extends the template of GitLab before its own script. */
export function gitlabScript(): string {
  const template = parse(readFileSync(join(release, 'berth.gitlab-ci.yml'), 'utf8'))
  return template['.berth'].before_script.join('\n')
}

/** Returns the paths of which a job of GitLab that failed uploads the files. */
export function gitlabArtifacts(): string[] {
  const template = parse(readFileSync(join(release, 'berth.gitlab-ci.yml'), 'utf8'))
  return template['.berth'].artifacts.paths
}
