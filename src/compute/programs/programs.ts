import { PACKAGE_VARIABLES } from '../sandbox.ts'
import fillGoCache from './fill-go-cache.js' with { type: 'text' }
import findProgram from './find-program.js' with { type: 'text' }
import npmModules from './npm-modules.js' with { type: 'text' }
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

/** Beginning of the names of those that are being written there. */
export const UNFINISHED = '.new-'

const FIND_PROGRAM_FILE = 'lib/find-program.js'
const FILL_GO_CACHE_FILE = 'lib/fill-go-cache.js'

/** The files that their scripts need, by path in the directory of tools. */
export const PROGRAM_FILES: Readonly<Record<string, string>> = {
  [FIND_PROGRAM_FILE]: findProgram,
  [FILL_GO_CACHE_FILE]: fillGoCache,
  'lib/npm-modules.js': npmModules,
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

/**
 * Returns the shell script that commands call as `go`: it starts the machine's Go. Before the first build of a server, its cache gets
 * the standard library.
 *
 * @param bun how to call Bun, as the script has it
 * @param tools absolute path of the directory of tools as commands see it, as the script has it
 * @param find lines that set `berth_program` to the machine's Go
 */
export const goScript = (bun: string, tools: string, find: string): string => `${find}case "\${1-}" in
  build | install | run | test | vet)
    if [ -n "$${PACKAGE_VARIABLES.url}" ] && [ "$GOCACHE" = "$${PACKAGE_VARIABLES.caches}/go-build" ] && ! [ -e "$GOCACHE/.berth" ]; then
      (export FROM="$PWD" BUN_BE_BUN=1 BUN_RUNTIME_TRANSPILER_CACHE_PATH=0
      cd / && exec ${bun} ${tools}/${FILL_GO_CACHE_FILE} "$berth_program" "$@") </dev/null >/dev/null 2>&1
    fi ;;
esac
exec "$berth_program" "$@"
`
