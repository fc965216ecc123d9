import type { Evidence } from '../../app-runtime/plan.ts'
import type { SourceDirectory } from '../source.ts'
import { dependsOn, fieldOf, type PackageJson } from './package-json.ts'

/** Reports whether a script starts several programs at once. */
export const startsSeveral = (script: string): boolean =>
  /\b(?:concurrently|npm-run-all|run-p)\b|[^&]&(?!&)/.test(script)

/** Reports whether a script of a workspace's root starts all of its packages, which would want the same port. */
export const runsAll = (script: string): boolean =>
  /\b(?:turbo|lerna|nx\s+run-many|wsrun|pnpm\s+(?:run\s+)?(?:-r|--recursive)|yarn\s+workspaces|npm\s.*--workspaces|preconstruct)\b/.test(
    script,
  ) && !/--(?:filter|scope|projects)\b|-F\b/.test(script)

const TOOL = String.raw`^\s*(?:(?:[A-Z_]+=\S+|cross-env|npx|bunx)\s+)*`

const COMPILERS = new RegExp(
  `${TOOL}(?:tsc|rollup|esbuild|tsup|swc|babel|sass|postcss|tailwindcss|@tailwindcss/cli|webpack)(?![\\w-])(?!.*\\bserve)`,
)

const TASK_RUNNERS = new RegExp(`${TOOL}(?:gulp|grunt|mix|encore)\\b`)

/** Reports whether a script compiles and serves nothing, such as one for the styles of another app. */
export const isCompiler = (script: string): boolean => COMPILERS.test(script) && !/&&|;/.test(script)

/** Reports whether a script runs tasks that may serve or not. */
export const isTaskRunner = (script: string): boolean => TASK_RUNNERS.test(script)

/** Matches the end of a word that runs a file, such as `node`. */
const RUNTIME = /(?:^|\W)(?:node|nodemon|tsx|ts-node|ts-node-dev|bun)$/

/** Matches what may stand between the runtime and its file. */
const OPTION = /^(?:-.*|watch|run)$/

const SCRIPT_FILE = /^[\w./-]+\.[cm]?[jt]s\b/

/** Reports whether a script runs a server of the package. */
export const runsServer = (pkg: PackageJson): boolean => Object.values(pkg.scripts).some(runsFile)

/** Word by word: a pattern for the whole would look at each word again for each runtime before it. */
function runsFile(script: string): boolean {
  let isAfterRuntime = false
  for (const word of script.split(/\s+/)) {
    if (isAfterRuntime && SCRIPT_FILE.test(word)) return true
    isAfterRuntime = RUNTIME.test(word) || (isAfterRuntime && OPTION.test(word))
  }
  return false
}

/** Kinds of packages that respond to no requests: the field that says so, whether a package is one, and what it is. */
const NO_SERVERS: ReadonlyArray<readonly [field: string, is: (pkg: PackageJson) => boolean, what: string]> = [
  [
    'electron',
    (pkg) => dependsOn(pkg, 'electron') && /^$|\belectron\b/.test(pkg.scripts.start ?? ''),
    'a desktop app (Electron), which opens windows',
  ],
  ['vscode', (pkg) => pkg.engines.vscode !== undefined, 'an extension of Visual Studio Code'],
  [
    'react-native',
    (pkg) => dependsOn(pkg, 'react-native') && !dependsOn(pkg, 'react-native-web', 'next', 'vite'),
    'a mobile app (React Native) without pages for browsers',
  ],
]

/** Returns why a package is no server by what it is, in a sentence; null if it may be one. */
export async function whyNoServer(
  app: SourceDirectory,
  pkg: PackageJson,
): Promise<{ sentence: string; evidence: Evidence } | null> {
  const found = NO_SERVERS.find(([, is]) => is(pkg))
  if (found === undefined) return null
  const [field, , what] = found
  const sentence = `This is ${what} and responds to no requests ("${field}" in package.json).`
  return { sentence, evidence: await fieldOf(app, field) }
}

/** Scripts that managers run around an install or a start, which may need development packages. */
const LIFECYCLE = [
  'preinstall',
  'install',
  'postinstall',
  'preprepare',
  'prepare',
  'postprepare',
  'prestart',
  'poststart',
]

/** Matches commands that run a file by a runtime, without options: a loader among them may be a development package. */
const PLAIN_RUN = /^\s*(?:(?!NODE_OPTIONS)[A-Z_]+=\S+\s+)*(?:node|bun)\s+[\w.][\w./-]*\s*$/

/** Matches development packages that no code needs when it runs: checks, tests and types. */
const TOOLS =
  /^(?:@types\/.*|@?(?:typescript-)?eslint(?:[-/].*)?|@typescript-eslint\/.*|prettier(?:-.*)?|@biomejs\/biome|stylelint(?:-.*)?|standard|xo|jest|ts-jest|@jest\/.*|mocha|chai(?:-.*)?|sinon(?:-.*)?|supertest|nyc|c8|ava|tap|tape|vitest|@vitest\/.*|cypress|playwright|@playwright\/test|nock|nodemon|husky|lint-staged|@commitlint\/.*|commitizen|release-it|semantic-release|@semantic-release\/.*|np|typescript|bun-types)$/

/** Reports whether a package starts without its development packages for certain. */
export const mayLeaveOutTools = (pkg: PackageJson, start: string): boolean =>
  PLAIN_RUN.test(start) &&
  !LIFECYCLE.some((name) => pkg.scripts[name] !== undefined) &&
  Object.keys(pkg.devDependencies).every((name) => TOOLS.test(name))
