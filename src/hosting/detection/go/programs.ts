import { posix } from 'node:path'
import type { SourceDirectory } from '../source.ts'

/** What a file of Go code that is built says. Its text is not kept, since a module may have many megabytes. */
export interface GoFile {
  /** Relative to the module. */
  readonly path: string
  readonly isMain: boolean
  readonly hasMain: boolean
  /** Paths of the packages that it imports. */
  readonly imports: readonly string[]
  /** Whether it listens by the standard library, and the frameworks whose way to listen it may use. */
  readonly listens: boolean
  readonly frameworks: readonly Framework[]
  /** The patterns that it embeds (`//go:embed`). */
  readonly embeds: readonly string[]
  /** The name of a command that listens, as it declares it; null for none. */
  readonly command: string | null
}

/** A program of a module, and what of the module it is made of. */
export interface GoProgram {
  /** Its directory, relative to the module; empty for the module's own. */
  readonly directory: string
  /** As `go build` and `go install` call it. */
  readonly name: string
  /** The file with its `main`. */
  readonly main: GoFile
  readonly files: readonly GoFile[]
  /** Packages of the module that it imports and that have no files in the source. */
  readonly missing: readonly { file: string; path: string }[]
  /** The file whose code listens; null if none does. */
  readonly listening: GoFile | null
  /** The framework that it responds with; null for the standard library or none. */
  readonly framework: string | null
  /** Words that make it listen, where it has several commands: `serve`. */
  readonly words: readonly string[]
}

/** Most files that are read, nearest to the top first. @bound peer */
const MAX_FILES = 1500

/** Directories that Go leaves out of a module's packages. */
const IGNORED = /(?:^|\/)(?:[._][^/]*|testdata|vendor|node_modules)\//

/** Matches code that listens. */
export const LISTENING_GO =
  /\.ListenAndServe(?:TLS|UNIX)?\(|\bnet\.Listen(?:TCP)?\(|\bgrpc\.NewServer\(|\bhttp\.(?:Serve|Server)\b[({]|\.(?:ServeListener|StartServer|RunListener|StartTLS|ListenTLS|RunTLS)\(/

/** A framework whose own method listens. */
interface Framework {
  readonly name: string
  readonly module: RegExp
  readonly listens: RegExp
  /** What makes its program listen. */
  readonly words?: readonly string[]
}

const FRAMEWORKS: readonly Framework[] = [
  { name: 'Gin', module: /^github\.com\/gin-gonic\/gin$/, listens: /\.Run\(/ },
  { name: 'Echo', module: /^github\.com\/labstack\/echo(?:\/v\d+)?$/, listens: /\.Start\(/ },
  { name: 'Fiber', module: /^github\.com\/gofiber\/fiber(?:\/v\d+)?$/, listens: /\.Listen\(/ },
  { name: 'Hertz', module: /^github\.com\/cloudwego\/hertz\//, listens: /\.Spin\(/ },
  { name: 'Iris', module: /^github\.com\/kataras\/iris(?:\/v\d+)?$/, listens: /\.(?:Listen|Run)\(/ },
  { name: 'Beego', module: /^github\.com\/(?:astaxie|beego)\/beego\b/, listens: /\b(?:beego|web)\.Run\(/ },
  { name: 'GoFr', module: /^gofr\.dev\/pkg\/gofr$/, listens: /\.Run\(/ },
  { name: 'Fuego', module: /^github\.com\/go-fuego\/fuego$/, listens: /\.Run\(/ },
  {
    ...{ name: 'PocketBase', module: /^github\.com\/pocketbase\/pocketbase$/, listens: /\.Start\(/ },
    words: ['serve', '--http=$HOST:$PORT'],
  },
  { name: 'chi', module: /^github\.com\/go-chi\/chi(?:\/v\d+)?$/, listens: LISTENING_GO },
]

/** Matches a command that a program of several commands listens with, as Cobra and urfave/cli declare it. */
const SERVE_COMMAND = /\b(?:Use|Name):\s*"(serve|server|web|http|api|start|run|daemon)\b/

/** Programs that are not what a module is for. */
const ASIDE =
  /(?:^|\/)(?:_?examples?|samples?|demos?|tests?|e2e|tools?|hack|scripts?|contrib|internal|benchmarks?|migrations?)(?:\/|$)/

const USUAL = ['server', 'web', 'api', 'app', 'http', 'service', 'main']

/** Finds the programs of a module, likeliest first: one that listens before others, then by name and depth. */
export async function findPrograms(directory: SourceDirectory, module: string): Promise<GoProgram[]> {
  const packages = await readPackages(directory)
  const found = [...packages].flatMap(([path, files]) => {
    const main = files.find(({ hasMain }) => hasMain) ?? files.find(({ isMain }) => isMain)
    if (main === undefined) return []
    return [programOf({ directory: path, name: nameOf(module, path), main }, packages, module)]
  })
  const own = module.split('/').at(-1) ?? ''
  const order = ({ directory: path, name, listening }: GoProgram): number =>
    (listening === null ? 1000 : 0) +
    (ASIDE.test(path) ? 500 : 0) +
    (path === '' || USUAL.includes(name) || name === own ? 0 : 50) +
    (path === '' ? 0 : path.split('/').length)
  return found.sort((a, b) => order(a) - order(b) || (a.directory < b.directory ? -1 : 1))
}

/** Reports whether a program is an example, a tool or the like. */
export const isAside = ({ directory }: Pick<GoProgram, 'directory'>): boolean => ASIDE.test(directory)

/** Returns the packages of a module: its directories with the files that are built. */
async function readPackages(directory: SourceDirectory): Promise<Map<string, GoFile[]>> {
  const all = directory.files
  const nested = all.filter((path) => path.endsWith('/go.mod')).map((path) => path.slice(0, -'go.mod'.length))
  const paths = all
    .filter((path) => path.endsWith('.go') && !path.endsWith('_test.go') && !IGNORED.test(`${path}/`))
    .filter((path) => !nested.some((other) => path.startsWith(other)))
    .sort((a, b) => a.split('/').length - b.split('/').length)
    .slice(0, MAX_FILES)
  const packages = new Map<string, GoFile[]>()
  for (const path of paths) {
    const text = uncommented(await directory.code(path))
    if (!isBuilt(path, text)) continue
    const at = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    packages.set(at, [...(packages.get(at) ?? []), fileOf(path, text)])
  }
  return packages
}

/** Removes comments that fill lines, without those that are for Go. */
const uncommented = (text: string): string =>
  text
    .replace(/^\uFEFF/, '')
    .replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, '')
    .replace(/^[ \t]*\/\/(?!go:|\s*\+build).*$/gm, '')

/** Returns what Go calls the program of a directory: the last element of its import path that is no version. */
function nameOf(module: string, directory: string): string {
  const names = [...module.split('/'), ...directory.split('/')].filter(Boolean)
  if (names.length > 1 && /^v\d+$/.test(names.at(-1) ?? '')) names.pop()
  return names.at(-1) ?? 'main'
}

function programOf(
  program: Pick<GoProgram, 'directory' | 'name' | 'main'>,
  packages: ReadonlyMap<string, readonly GoFile[]>,
  module: string,
): GoProgram {
  const missing: { file: string; path: string }[] = []
  const reached = new Set([program.directory])
  const files: GoFile[] = []
  for (const at of reached) {
    for (const file of packages.get(at) ?? []) {
      files.push(file)
      for (const path of file.imports) {
        if (path !== module && !path.startsWith(`${module}/`)) continue
        const to = path.slice(module.length + 1)
        if (packages.has(to)) reached.add(to)
        else if (!missing.some((one) => one.path === to)) missing.push({ file: file.path, path: to })
      }
    }
  }
  const imported = (pattern: RegExp): boolean =>
    files.some(({ imports }) => imports.some((path) => pattern.test(path)))
  const framework = FRAMEWORKS.find(
    (one) => imported(one.module) && files.some(({ frameworks }) => frameworks.includes(one)),
  )
  const listening =
    files.find(({ listens }) => listens) ??
    (framework === undefined
      ? null
      : (files.find(
          ({ frameworks, imports }) =>
            frameworks.includes(framework) && imports.some((path) => framework.module.test(path)),
        ) ?? program.main))
  const command = imported(COMMANDS) ? (files.find((file) => file.command !== null)?.command ?? null) : null
  return {
    ...program,
    ...{ files, missing, listening },
    framework: framework?.name ?? null,
    words: framework?.words ?? (command === null ? [] : [command]),
  }
}

/** Matches packages for programs of several commands. */
const COMMANDS = /^github\.com\/(?:spf13\/cobra|urfave\/cli)(?:\/v\d+)?$/

const fileOf = (path: string, text: string): GoFile => {
  const imports = importsOf(text)
  return {
    path,
    isMain: /^package main\b/m.test(text),
    hasMain: /^package main\b/m.test(text) && /^func main\(/m.test(text),
    imports,
    listens: LISTENING_GO.test(text),
    frameworks: FRAMEWORKS.filter(({ listens }) => listens.test(text)),
    embeds: [...text.matchAll(/^\/\/go:embed[ \t]+(.+?)\r?$/gm)].map(([, patterns = '']) => patterns),
    command: imports.some((one) => COMMANDS.test(one)) ? (SERVE_COMMAND.exec(text)?.[1] ?? null) : null,
  }
}

/** Returns the paths that a file imports. */
function importsOf(text: string): string[] {
  const end = text.search(/^(?:func|type|var|const)\b/m)
  const head = end === -1 ? text : text.slice(0, end)
  return [...head.matchAll(/"([^"\s]+)"/g)].map(([, path = '']) => path)
}

/** Matches the evidence that a program listens. */
export const listensIn = ({ framework }: GoProgram): RegExp => {
  const own = FRAMEWORKS.find(({ name }) => name === framework)?.listens
  return own === undefined ? LISTENING_GO : new RegExp(`${LISTENING_GO.source}|${own.source}`)
}

/** What a program takes into itself when it is built. */
export interface GoEmbed {
  /** The file that says so. */
  readonly file: string
  readonly pattern: string
  /** The directory with the files, or the file. */
  readonly directory: string
  /** Whether the source has such files. */
  readonly isThere: boolean
}

/** Returns what the files of a program embed (`//go:embed`). */
export function embedsOf({ files }: GoProgram, directory: SourceDirectory): GoEmbed[] {
  const all = directory.files
  return files.flatMap(({ path, embeds }) =>
    embeds.flatMap((patterns) =>
      patterns.split(/\s+/).map((one) => {
        const pattern = one.replace(/^["`]?(?:all:)?/, '').replace(/["`]$/, '')
        const whole = posix.join(posix.dirname(path), pattern)
        const fixed = whole.split('/')
        const wild = fixed.findIndex((name) => /[*?[]/.test(name))
        const glob = new Bun.Glob(whole)
        const below = new Bun.Glob(`${whole}/**`)
        const isThere = all.some((name) => name === whole || glob.match(name) || below.match(name))
        return {
          file: path,
          pattern,
          directory: (wild === -1 ? fixed : fixed.slice(0, wild)).join('/'),
          isThere,
        }
      }),
    ),
  )
}

/** Operating systems and processors that names of Go files may end with. */
const SYSTEMS = new Set(
  'aix android darwin dragonfly freebsd illumos ios js linux netbsd openbsd plan9 solaris wasip1 windows'.split(
    ' ',
  ),
)
const PROCESSORS = new Set(
  '386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x wasm'.split(' '),
)

const SYSTEM = process.platform === 'darwin' ? 'darwin' : 'linux'
const PROCESSOR = process.arch === 'x64' ? 'amd64' : process.arch

/** Tags that hold without `-tags`. */
const TAGS = new Set([SYSTEM, PROCESSOR, 'unix', 'gc', 'cgo'])

/**
 * Reports whether `go build` takes a file in on this machine: by its name (`_test`, `_windows`, `_arm64`) and its
 * constraint (`//go:build ignore`).
 */
function isBuilt(path: string, text: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (/^[._]|_test\.go$/.test(name)) return false
  const [last = '', before = ''] = name.replace(/\.go$/, '').split('_').slice(1).reverse()
  if (PROCESSORS.has(last) && last !== PROCESSOR) return false
  const system = PROCESSORS.has(last) ? before : last
  if (SYSTEMS.has(system) && system !== SYSTEM) return false
  const head = text.slice(0, Math.max(0, text.search(/^package\b/m)))
  const constraint = /^\/\/go:build\s+(.*)$/m.exec(head)?.[1]
  if (constraint !== undefined) return holds(constraint)
  return !/^\/\/\s*\+build\s.*\bignore\b/m.test(head)
}

/** Evaluates an expression of tags with `!`, `&&`, `||` and parentheses. One that is not valid holds, for Go to report it. */
function holds(constraint: string): boolean {
  const tokens = constraint.match(/[\w.]+|&&|\|\||[!()]/g) ?? []
  let at = 0
  const unit = (): boolean => {
    const token = tokens[at]
    at += 1
    if (token === '!') return !unit()
    if (token !== '(') return token === undefined || TAGS.has(token) || /^go1\.\d+$/.test(token)
    const value = either()
    at += 1
    return value
  }
  const both = (): boolean => {
    let value = unit()
    while (tokens[at] === '&&') {
      at += 1
      value = unit() && value
    }
    return value
  }
  const either = (): boolean => {
    let value = both()
    while (tokens[at] === '||') {
      at += 1
      value = both() || value
    }
    return value
  }
  return either()
}
