/** What people call the programs of languages, and how a server gets one that it lacks. */

/** Programs that a tool of another name has. */
const PARTS: Readonly<Record<string, string>> = {
  javac: 'java',
  jar: 'java',
  rustc: 'cargo',
  gem: 'ruby',
  python3: 'python',
}

/** What people call a tool, and how it is installed. */
interface Tool {
  readonly title: string
  /** What is installed, if it is not called so. */
  readonly what?: string
  /** Its package of Debian and Ubuntu; missing if they have none. */
  readonly debian?: string
  /** How it is installed but by the machine's package manager. */
  readonly by?: string
  /** What else helps. */
  readonly or?: string
  /** An image with glibc that has it. */
  readonly image?: string
}

const TOOLS: Readonly<Record<string, Tool>> = {
  python: { title: 'Python', debian: 'python3 python3-venv', image: 'python:3' },
  go: { title: 'Go', by: 'from https://go.dev/dl', debian: 'golang-go', image: 'golang:1' },
  cargo: { title: 'Rust', by: 'by https://rustup.rs', debian: 'cargo', image: 'rust:1' },
  deno: { title: 'Deno', by: 'from https://deno.com', image: 'denoland/deno:2' },
  node: { title: 'Node.js', by: 'from https://nodejs.org or with your package manager', image: 'node:24' },
  java: { title: 'Java', what: 'a JDK', debian: 'default-jdk', image: 'eclipse-temurin:25' },
  mvn: { title: 'Maven', debian: 'maven', image: 'maven:3' },
  gradle: {
    title: 'Gradle',
    by: 'from https://gradle.org',
    or: 'add its wrapper to the app',
    image: 'gradle:9',
  },
  php: { title: 'PHP', debian: 'php-cli', image: 'php:8' },
  composer: { title: 'Composer', debian: 'composer' },
  ruby: { title: 'Ruby', debian: 'ruby-full', image: 'ruby:3' },
  bundle: { title: 'Bundler', debian: 'ruby-bundler', image: 'ruby:3' },
  zola: { title: 'Zola', by: 'from https://www.getzola.org' },
  mdbook: { title: 'mdBook', by: 'by "cargo install mdbook", or from https://rust-lang.github.io/mdBook' },
  jekyll: { title: 'Jekyll', debian: 'jekyll', or: 'add a Gemfile' },
  rackup: { title: 'Rackup', debian: 'ruby-rack', or: 'add a Gemfile' },
  hugo: { title: 'Hugo', by: 'from https://gohugo.io', debian: 'hugo' },
}

/** Returns what people call a tool, and how it is installed. The need of an extension of PHP is called `php-EXTENSION`. */
function toolOf(name: string): Tool {
  const extension = /^php-(.+)$/.exec(name)?.[1]
  if (extension === undefined) return TOOLS[name] ?? { title: name }
  return {
    title: `the PHP extension ${extension}`,
    debian: `php-${DEBIAN_EXTENSIONS[extension] ?? extension}`,
  }
}

/** Returns what people call a tool. */
export const titleOf = (name: string): string => toolOf(name).title

function remedyOf(name: string): string {
  const { what = 'it', by, debian, or } = toolOf(name)
  const ways = [
    ...(by === undefined ? [] : [by]),
    ...(debian === undefined ? [] : [`with your package manager (Debian and Ubuntu: apt install ${debian})`]),
  ]
  return `${[`Install ${what}`, ways.join(' or ')].filter(Boolean).join(' ')}${or === undefined ? '' : `, or ${or}`}`
}

/** The packages of Debian that have extensions of other names. */
const DEBIAN_EXTENSIONS: Readonly<Record<string, string>> = {
  pdo_sqlite: 'sqlite3',
  pdo_mysql: 'mysql',
  mysqli: 'mysql',
  pdo_pgsql: 'pgsql',
  dom: 'xml',
  simplexml: 'xml',
  xmlreader: 'xml',
  xmlwriter: 'xml',
}

/**
 * Returns what helps where the programs are those of an image.
 *
 * @param wanted the version, as a file says it; null for any
 */
export function imageRemedy(name: string, wanted: string | null): string {
  const image = TOOLS[name]?.image ?? 'IMAGE'
  const version = /^(?:[>=^~]+ *)?(\d+(?:\.\d+)?)/.exec(wanted ?? '')?.[1]
  const base = version === undefined ? image : image.replace(/:\d+$/, `:${version}`)
  return `On Docker, "berth engine prepare --base ${base} --pull" makes one that has it: stop the server then, and bring the app up again. Or start berth with --server-image, or create a server with --image, where --server-images permits it.`
}

/**
 * Returns that a tool is missing, as the end of a sentence, and the remedy.
 *
 * @param hasImage whether servers have an image's programs
 * @param wanted the version, as a file says it; null for any
 */
export function isMissing(name: string, hasImage: boolean, wanted: string | null): string {
  if (hasImage) return `which the image of the server does not have. ${imageRemedy(name, wanted)}`
  return `which is not installed on this machine, or not where servers see it. ${remedyOf(name)}, and restart berth and the project.`
}

/**
 * Returns a sentence, with the remedy, that a command failed because a tool is missing; null if its last lines of output do not name
 * one that berth knows.
 */
export function describeMissingTool(lines: readonly string[], hasImage: boolean): string | null {
  for (const line of lines) {
    const [, program = ''] = /(?:^|[\s:])([a-z][\w.-]*): (?:command )?not found$/.exec(line.trim()) ?? []
    const name = PARTS[program] ?? program
    if (Object.hasOwn(TOOLS, name))
      return `It needs ${TOOLS[name]?.title}, ${isMissing(name, hasImage, null)}`
  }
  return null
}
