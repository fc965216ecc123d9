import type { PackageJson } from './package-json.ts'

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
