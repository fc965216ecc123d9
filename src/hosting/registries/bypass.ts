import { join } from 'node:path/posix'
import type { Workspace } from '../../compute/workspace.ts'
import { readMavenWrapper, WRAPPER_JAR, WRAPPER_SETTINGS } from './maven-wrapper.ts'

/** Most bytes of a file that is read for its addresses. @bound peer */
const MAX_BYTES = 16 * 2 ** 20

/** Most hosts that a line names. @bound reader */
const MOST_HOSTS = 3

/** Returns the text of a file in the directory of a command; null if it is missing or too large. */
type Read = (name: string) => Promise<string | null>

/** What a command runs with. */
export interface BypassStep {
  readonly command: string
  readonly read: Read
  /** Reports whether a program is berth's own, because the machine has none. */
  readonly isOfBerth: (program: string) => Promise<boolean>
  /** Which repositories Maven's mirror is for. */
  readonly mavenMirrorOf: string
}

/** Hosts, and the file that names them. */
interface Named {
  readonly file: string
  readonly hosts: Iterable<string>
}

/** A package manager that asks other hosts than the relay. */
interface Rule {
  readonly tool: string
  readonly command: RegExp
  /** Returns the hosts that it asks. */
  find(step: BypassStep): Promise<readonly Named[]>
}

/** What a rule finds in files. */
interface Addresses {
  /** The first of them that exists counts. */
  readonly files: readonly string[]
  /** Matches what is no address that is asked, such as comments. */
  readonly except?: RegExp
  /** Matches an address, and captures its host, or a word for it. */
  readonly address: RegExp
  /** The hosts that words stand for. */
  readonly words?: Readonly<Record<string, string>>
  /** The hosts that the tool replaces by the relay. */
  readonly replaced?: readonly string[]
  /** The name of the program, if only berth's own replaces them. */
  readonly ofBerth?: string
}

const inFiles =
  ({ files, except = /$^/, address, words = {}, replaced = [], ofBerth }: Addresses): Rule['find'] =>
  async ({ read, isOfBerth }) => {
    for (const file of files) {
      const text = await read(file)
      if (text === null) continue
      const found = [...text.replace(except, '').matchAll(address)].map(([, ...groups]) => {
        const host = groups.find((one) => one !== undefined) ?? ''
        return words[host] ?? host.replace(/^.*@/, '')
      })
      const hosts = new Set(found)
      if (ofBerth === undefined || (await isOfBerth(ofBerth))) for (const host of replaced) hosts.delete(host)
      return [{ file, hosts }]
    }
    return []
  }

const inPom =
  (addresses: Addresses): Rule['find'] =>
  async (step) =>
    step.mavenMirrorOf.includes('*') ? [] : inFiles(addresses)(step)

const RESOLVED = /"resolved": *"https?:\/\/([^/"]+)/g
const NPM = ['registry.npmjs.org']
const PYPI = ['pypi.org', 'files.pythonhosted.org']
const RULES: readonly Rule[] = [
  {
    tool: 'npm',
    command: /\bnpm (?:ci|install|i)\b/,
    find: inFiles({ files: ['package-lock.json'], address: RESOLVED, replaced: NPM }),
  },
  {
    tool: 'Bun',
    command: /\bbun (?:ci|install|i)\b/,
    find: inFiles({ files: ['bun.lock', 'bun.lockb', 'package-lock.json'], address: RESOLVED }),
  },
  {
    tool: 'Yarn 1',
    command: /\byarn\b/,
    find: inFiles({
      files: ['yarn.lock'],
      address: /^ {2}resolved "https?:\/\/([^/"]+)/gm,
      replaced: ['registry.yarnpkg.com', ...NPM],
      ofBerth: 'yarn',
    }),
  },
  {
    tool: 'pnpm',
    command: /\bpnpm\b/,
    find: inFiles({ files: ['pnpm-lock.yaml'], address: /\btarball: https?:\/\/([^/\s}]+)/g }),
  },
  {
    tool: 'Deno',
    command: /\bdeno\b/,
    find: inFiles({
      files: ['deno.lock', 'deno.json', 'deno.jsonc'],
      except: /"\$schema": *"[^"]*"/g,
      address: /"(?:(jsr):|https?:\/\/([^/"]+))/g,
      words: { jsr: 'jsr.io' },
      replaced: NPM,
    }),
  },
  {
    tool: 'uv',
    command: /\buv (?:sync|run)\b/,
    find: inFiles({ files: ['uv.lock'], address: /\burl = "https?:\/\/([^/"]+)/g }),
  },
  {
    tool: 'pip',
    command: /\bpip3? install\b/,
    async find(step) {
      const lists = [...step.command.matchAll(/(?:-r|--requirement)[ =]?['"]?([^\s'"]+)/g)]
      const address = /\b(?:https?|ssh):\/\/([^/\s]+)/g
      const find = ([, list = '']: RegExpMatchArray) =>
        inFiles({ files: [list], except: /(?:^|\s)#.*/gm, address, replaced: PYPI })(step)
      return (await Promise.all(lists.map(find))).flat()
    },
  },
  {
    tool: 'Poetry',
    command: /\bpoetry\b/,
    find: inFiles({
      files: ['poetry.lock'],
      address: /^url = "(?:https?|ssh):\/\/([^/"]+)/gm,
      replaced: PYPI,
    }),
  },
  {
    tool: 'pipenv',
    command: /\bpipenv\b/,
    find: inFiles({
      files: ['Pipfile.lock', 'Pipfile'],
      address: /"?(?:url|git|file)"?(?: =|:) "(?:https?|ssh):\/\/([^/"]+)/g,
      replaced: PYPI,
    }),
  },
  {
    tool: 'Cargo',
    command: /\bcargo\b/,
    find: inFiles({
      files: ['Cargo.lock', 'Cargo.toml'],
      address:
        /^(?:source|.*\bgit) ?= ?"(?:git\+|(?:registry|sparse)\+(?!https:\/\/github\.com\/rust-lang\/crates\.io-index))?(?:https?|ssh):\/\/([^/"]+)/gm,
    }),
  },
  {
    tool: "Maven's wrapper",
    command: /\bmvnw\b/,
    async find({ read }) {
      const [script, settings] = [(await read('mvnw')) ?? '', (await read(WRAPPER_SETTINGS)) ?? '']
      const { maven, isMovable, jar, isUsualJar } = readMavenWrapper(script, settings)
      const hasJar = jar === null || (await read(WRAPPER_JAR)) !== null
      const asked = [isMovable ? null : maven, hasJar || isUsualJar ? null : jar]
      const hosts = asked.flatMap((address) => URL.parse(address ?? '')?.host ?? [])
      return [{ file: WRAPPER_SETTINGS, hosts: new Set(hosts) }]
    },
  },
  {
    tool: 'Maven',
    command: /\bmvnw?\b/,
    find: inPom({
      files: ['pom.xml'],
      // Comments, where it publishes, and the central repository, which is replaced by its name.
      except:
        /<!--[\s\S]*?-->|<distributionManagement>[\s\S]*?<\/distributionManagement>|<(\w*[rR]epository)>(?:(?!<\/\1>)[\s\S])*?<id>\s*central\s*<[\s\S]*?<\/\1>/g,
      address: /<\w*[rR]epository>(?:(?!<\/\w*[rR]epository>)[\s\S])*?<url>\s*https?:\/\/([^/<]+)/g,
    }),
  },
  {
    tool: "Gradle's wrapper",
    command: /\bgradlew\b/,
    find: inFiles({
      files: ['gradle/wrapper/gradle-wrapper.properties'],
      address: /^distributionUrl\s*=\s*https?\\?:\/\/([^/\s]+)/gm,
    }),
  },
  {
    tool: 'Gradle',
    command: /\bgradlew?\b/,
    async find(step) {
      const files = ['settings.gradle.kts', 'settings.gradle', 'build.gradle.kts', 'build.gradle']
      const found = files.map((file) =>
        inFiles({
          files: [file],
          except: /^\s*\/\/.*/gm,
          address: /\bmaven\b[^"']{0,40}["']https?:\/\/([^/"']+)|\b(google|jcenter)\(\)/g,
          words: { google: 'dl.google.com', jcenter: 'jcenter.bintray.com' },
          replaced: ['repo.maven.apache.org', 'repo1.maven.org', 'plugins.gradle.org'],
        })(step),
      )
      return (await Promise.all(found)).flat()
    },
  },
  {
    tool: 'Composer',
    command: /\bcomposer (?:install|update|i)\b/,
    find: inFiles({
      files: ['composer.lock', 'composer.json'],
      address:
        /^(?:\t| {2,4})"(require)"|"dist": *\{\s*"type": *"\w+",\s*"url": *"https?:\/\/([^/"]+)|"(?:vcs|git|github|composer)",\s*"url": *"https?:\/\/([^/"]+)/gm,
      words: { require: 'repo.packagist.org (for archives mostly api.github.com)' },
    }),
  },
  {
    tool: 'Bundler',
    command: /\bbundle\b/,
    find: inFiles({
      files: ['Gemfile.lock', 'Gemfile'],
      address:
        /(?:^ {2}remote: |\bsource\s*\(?["']|\bgit:\s*["'])(?:https?|ssh):\/\/([^/\s"']+)|^\s*gem\b.*\b(github):/gm,
      words: { github: 'github.com' },
      replaced: ['rubygems.org', 'index.rubygems.org'],
    }),
  },
]

/** Returns which downloads of a command go past the relay, each a sentence. */
export async function bypassesOf(step: BypassStep): Promise<string[]> {
  const lines: string[] = []
  for (const { tool, command, find } of RULES) {
    if (!command.test(step.command)) continue
    for (const { file, hosts } of await find(step)) {
      const sorted = [...new Set(hosts)].sort()
      if (sorted.length === 0) continue
      const named = sorted.slice(0, MOST_HOSTS).join(', ')
      const more = sorted.length > MOST_HOSTS ? ` and ${sorted.length - MOST_HOSTS} more` : ''
      lines.push(`${tool} asks ${named}${more} itself, as ${file} says, past berth's relay of registries.`)
    }
  }
  return lines
}

/** Returns how a step reads files. @param directory of the command, relative to the workspace */
export const readerOf =
  (workspace: Pick<Workspace, 'read'>, directory: string): Read =>
  async (name) => {
    try {
      return new TextDecoder().decode(await workspace.read(join(directory, name), MAX_BYTES))
    } catch {
      // It is missing, or too large to look through.
      return null
    }
  }
