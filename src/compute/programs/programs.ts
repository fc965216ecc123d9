import findProgram from './find-program.js' with { type: 'text' }
import pipenv from './pipenv.txt' with { type: 'text' }
import poetry from './poetry.txt' with { type: 'text' }
import yarnRelay from './yarn-relay.js' with { type: 'text' }

/** Names of package managers that every server has. */
export const PROGRAM_NAMES = [
  ...['npm', 'npx', 'pnpm', 'pnpx', 'yarn', 'yarnpkg'],
  ...['uv', 'uvx', 'poetry', 'pipenv'],
] as const

/** Directory, relative to that of tools, in which berth keeps them. */
export const PROGRAMS_DIRECTORY = 'programs'

const FIND_PROGRAM_FILE = 'lib/find-program.js'

/** The files that their scripts need, by path in the directory of tools. */
export const PROGRAM_FILES: Readonly<Record<string, string>> = {
  [FIND_PROGRAM_FILE]: findProgram,
  'lib/yarn-relay.js': yarnRelay,
  'etc/poetry.txt': poetry,
  'etc/pipenv.txt': pipenv,
}

/**
 * Returns the shell script that commands call as a package manager which the machine does not have. It is the process that
 * becomes the program, so signals reach it.
 *
 * @param bun how to call Bun, as the script has it
 * @param tools absolute path of the directory of tools as commands see it, as the script has it
 */
export const programScript = (name: string, bun: string, tools: string): string => `from=$PWD
# Not in the directory of the project, whose settings Bun would read, and without a cache of Bun's in the home directory.
set_up=$(cd / && FROM=$from BUN_BE_BUN=1 BUN_RUNTIME_TRANSPILER_CACHE_PATH=0 ${bun} ${tools}/${FIND_PROGRAM_FILE} ${name} "$@") || exit 69
eval "$set_up"
exec "$@"
`
