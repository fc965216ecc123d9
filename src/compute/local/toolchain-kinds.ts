import { existsSync, lstatSync } from 'node:fs'
import { join } from 'node:path'
import { entriesOf, isDirectory, namesIn, realPathOrNull, textOrEmpty } from '../../runtime/if-present.ts'

/** A language's or a build tool's main program, by the name under which apps need it. */
export type ToolName =
  | 'python'
  | 'node'
  | 'go'
  | 'java'
  | 'mvn'
  | 'gradle'
  | 'cargo'
  | 'ruby'
  | 'php'
  | 'bun'
  | 'deno'

/** How a kind of toolchain is recognised by its files, and what belongs to it. */
interface ToolchainKind {
  tool: ToolName
  /** The main program, relative to the prefix. Several names are tried in order. */
  programs: readonly string[]
  /** Reports whether the files of a prefix that has the program are those of such a toolchain. */
  matches(prefix: string): boolean
  /** Reads the version from the files; null if they do not say. */
  version(prefix: string): string | null
  /** Paths relative to the prefix that belong to the toolchain, with everything below them. */
  parts: RegExp
  /** Directories that hold such parts beside other files. */
  mixed?: RegExp
}

/** Texts that distributors put beside a toolchain's directories. */
const TEXTS = '(?:LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|README|CHANGES|CHANGELOG|AUTHORS|PATENTS)[\\w.-]*'

/** What toolchains of Unix have under the same names. */
const COMMON = `bin|sbin|lib(?:32|64|exec)?|include|man|share/(?:man|doc|info)|${TEXTS}`

/** The parts of every toolchain of Unix, and those that are special to a kind. */
const parts = (special = '\\0'): RegExp => new RegExp(`^(?:${COMMON}|${special})$`, 'i')

/**
 * All kinds. A prefix is of the first that matches. Files with a person's settings and credentials, such as Maven's
 * settings.xml, npm's etc/npmrc or pip's pip.conf, are in no list of parts.
 */
const KINDS: readonly ToolchainKind[] = [
  {
    tool: 'go',
    programs: ['bin/go'],
    matches: (prefix) =>
      /^(?:go|devel)/.test(textAt(prefix, 'VERSION')) && isDirectory(join(prefix, 'pkg/tool')),
    version: (prefix) => /^go(\S+)/.exec(textAt(prefix, 'VERSION'))?.[1] ?? null,
    // A directory that is also a GOPATH has modules below pkg, and packages by their hosts' names below src.
    parts: parts(
      'api|doc|misc|test|VERSION|go\\.env|codereview\\.cfg|favicon\\.ico|robots\\.txt|(?:CONTRIBUTING|SECURITY)\\.md|pkg/(?:tool|include|[a-z]+_[a-z0-9_]+)|src/(?:[^./]+|[^/]+\\.(?:bash|bat|rc|dist|mod|sum)|README\\.vendor)',
    ),
    mixed: /^(?:pkg|src)$/,
  },
  {
    tool: 'java',
    programs: ['bin/java'],
    matches: (prefix) => /^JAVA_VERSION=/m.test(textAt(prefix, 'release')),
    version: (prefix) => /^JAVA_VERSION="?([^"\s]+)/m.exec(textAt(prefix, 'release'))?.[1] ?? null,
    parts: parts(
      'release|jmods|jre|legal|demo|sample|src\\.zip|languages|tools|(?:commitId|version|readme)\\.txt|conf/(?:[^/]+\\.(?:properties|conf)|security|sdp|jaxp[\\w.-]*|management/[^/]+\\.(?:properties|template))',
    ),
    // A person writes passwords for remote management into conf/management.
    mixed: /^conf(?:\/management)?$/,
  },
  {
    tool: 'mvn',
    programs: ['bin/mvn'],
    matches: (prefix) => isDirectory(join(prefix, 'boot')) && libraryOf(prefix, MAVEN_CORE) !== null,
    version: (prefix) => libraryVersion(prefix, MAVEN_CORE),
    parts: parts('boot|mvn|conf/(?:logging|toolchains\\.xml|m2\\.conf|[^/]+\\.properties)'),
    mixed: /^conf$/,
  },
  {
    tool: 'gradle',
    programs: ['bin/gradle'],
    matches: (prefix) => libraryOf(prefix, GRADLE_CORE) !== null,
    version: (prefix) => libraryVersion(prefix, GRADLE_CORE),
    // A person's init scripts may name a registry with its password.
    parts: parts('src|docs|samples|init\\.d/readme\\.txt'),
    mixed: /^init\.d$/,
  },
  {
    tool: 'node',
    programs: ['bin/node'],
    matches: (prefix) => nodeVersion(prefix) !== null,
    version: nodeVersion,
    parts: parts('share/systemtap'),
  },
  {
    tool: 'python',
    programs: ['bin/python3', 'bin/python', 'bin/pypy3'],
    matches: (prefix) => pythonLibrary(prefix) !== null,
    version: pythonVersion,
    parts: parts('lib_pypy|lib-python|ssl/(?:certs|cert\\.pem|cacert\\.pem|openssl\\.cnf)'),
    mixed: /^ssl$/,
  },
  {
    tool: 'ruby',
    programs: ['bin/ruby'],
    matches: (prefix) => rubyLibrary(prefix) !== null,
    version: rubyVersion,
    parts: parts('share/ri'),
  },
  {
    tool: 'cargo',
    programs: ['bin/cargo', 'bin/rustc'],
    matches: (prefix) => isDirectory(join(prefix, 'lib/rustlib')),
    version: rustVersion,
    parts: parts('etc/bash_completion\\.d|etc/target-spec-json-schema\\.json|share/(?:zsh|fish)'),
    mixed: /^etc$/,
  },
  {
    tool: 'php',
    programs: ['bin/php'],
    matches: (prefix) => existsSync(join(prefix, PHP_VERSION_FILE)),
    version: (prefix) => /PHP_VERSION "([^"]+)"/.exec(textAt(prefix, PHP_VERSION_FILE))?.[1] ?? null,
    parts: parts('php|etc/php\\.ini|etc/conf\\.d'),
    mixed: /^etc$/,
  },
]

/** Programs of one file, which version managers keep in a directory of their own. */
const SINGLE_PROGRAMS: readonly ToolchainKind[] = (['bun', 'deno'] as const).map((tool) => ({
  tool,
  programs: [`bin/${tool}`],
  matches: () => true,
  version: () => null,
  parts: /^bin$/,
}))

/** A directory that has been recognised as a toolchain. */
export interface RecognisedToolchain {
  readonly tool: ToolName
  /** Absolute path of the directory, without links. */
  readonly prefix: string
  /** Absolute path of its main program. */
  readonly program: string
  /** Reads its version; null if its files do not say it. */
  version(): string | null
  /**
   * Absolute paths of its files and directories, without links: the directory itself if nothing else is in it. Something
   * else, such as the rest of a home, is left out.
   */
  parts(): string[]
}

/**
 * Recognises a directory as a toolchain by its files. Runs nothing.
 *
 * @param prefix absolute path of the directory, without links
 * @param managed whether a version manager keeps the directory, so programs of one file count too
 */
export function recognise(prefix: string, managed = false): RecognisedToolchain | null {
  for (const kind of managed ? [...KINDS, ...SINGLE_PROGRAMS] : KINDS) {
    const program = kind.programs.map((path) => join(prefix, path)).find(existsSync)
    if (program === undefined || !kind.matches(prefix)) continue
    return {
      tool: kind.tool,
      prefix,
      program,
      version: () => kind.version(prefix),
      parts: () => partsOf(prefix, kind),
    }
  }
  return null
}

/** Returns the fewest paths that hold all parts of a toolchain and nothing else. */
function partsOf(prefix: string, { parts: belongs, mixed = /^$/ }: ToolchainKind): string[] {
  const collect = (directory: string): { paths: string[]; isWhole: boolean } => {
    const paths: string[] = []
    let isWhole = true
    for (const entry of entriesOf(join(prefix, directory))) {
      const path = directory === '' ? entry.name : `${directory}/${entry.name}`
      const absolute = join(prefix, path)
      // A link to elsewhere would show what it leads to.
      const real = entry.isSymbolicLink() ? realPathOrNull(absolute) : absolute
      if (real === null || !real.startsWith(`${prefix}/`)) {
        isWhole = false
      } else if (belongs.test(path)) {
        paths.push(real)
      } else if (entry.isDirectory() && (path === 'share' || mixed.test(path))) {
        const inner = collect(path)
        paths.push(...(inner.isWhole ? [absolute] : inner.paths))
        if (!inner.isWhole) isWhole = false
      } else {
        isWhole = false
      }
    }
    return { paths, isWhole }
  }
  const { paths, isWhole } = collect('')
  return isWhole ? [prefix] : [...new Set(paths)]
}

const PHP_VERSION_FILE = 'include/php/main/php_version.h'

const MAVEN_CORE = /^maven-core-(\d[\w.-]*)\.jar$/
const GRADLE_CORE = /^gradle-(?:core|launcher|gradle-cli-main)-(\d[\w.-]*)\.jar$/

/** Returns the path of the library that has such a name. */
function libraryOf(prefix: string, name: RegExp): string | null {
  const found = namesIn(join(prefix, 'lib')).find((library) => name.test(library))
  return found === undefined ? null : join(prefix, 'lib', found)
}

/** Returns the version in the name of a library. That of Debian is a link to one that has the whole version. */
function libraryVersion(prefix: string, name: RegExp): string | null {
  const library = libraryOf(prefix, name)
  const named = library === null ? null : /-(\d[\w.-]*)\.jar$/.exec(realPathOrNull(library) ?? '')?.[1]
  return named ?? null
}

function nodeVersion(prefix: string): string | null {
  const header = textAt(prefix, 'include/node/node_version.h')
  const numbers = ['MAJOR', 'MINOR', 'PATCH'].map(
    (part) => new RegExp(`^#define NODE_${part}_VERSION (\\d+)$`, 'm').exec(header)?.[1],
  )
  return numbers.includes(undefined) ? null : numbers.join('.')
}

/**
 * Returns the directory of Python's library, relative to the prefix. A virtual environment has none: it uses that of the
 * Python that made it, and old ones have links to it.
 */
function pythonLibrary(prefix: string): string | null {
  if (existsSync(join(prefix, 'pyvenv.cfg'))) return null
  for (const { name } of entriesOf(join(prefix, 'lib'))) {
    if (!/^(?:python|pypy)\d+\.\d+t?$/.test(name)) continue
    const library = join(prefix, 'lib', name)
    if (existsSync(join(library, 'orig-prefix.txt'))) continue
    if (lstatSync(join(library, 'os.py'), { throwIfNoEntry: false })?.isFile()) return `lib/${name}`
  }
  return null
}

function pythonVersion(prefix: string): string | null {
  for (const { name } of entriesOf(join(prefix, 'include'))) {
    const version = /^#define PY_VERSION\s+"([^"+]+)/m.exec(
      textAt(prefix, `include/${name}/patchlevel.h`),
    )?.[1]
    if (version !== undefined) return version
  }
  return null
}

/** Returns the directory of Ruby's library for this machine, relative to the prefix. */
function rubyLibrary(prefix: string): string | null {
  for (const { name } of entriesOf(join(prefix, 'lib/ruby'))) {
    if (/^\d+\.\d+\.\d+$/.test(name)) return `lib/ruby/${name}`
  }
  return null
}

function rubyVersion(prefix: string): string | null {
  const library = rubyLibrary(prefix)
  for (const { name } of library === null ? [] : entriesOf(join(prefix, library))) {
    const settings = textAt(prefix, `${library}/${name}/rbconfig.rb`)
    const version = /CONFIG\["RUBY_PROGRAM_VERSION"\] = "([^"]+)"/.exec(settings)?.[1]
    if (version !== undefined) return version
  }
  return null
}

/** The version of the compiler: that of cargo is another one. */
function rustVersion(prefix: string): string | null {
  const manifest = textAt(prefix, 'lib/rustlib/multirust-channel-manifest.toml')
  return /^\[pkg\.rustc?\]\nversion = "([^" ]+)/m.exec(manifest)?.[1] ?? null
}

const textAt = (prefix: string, path: string): string => textOrEmpty(join(prefix, path))
