import type { Evidence } from '../../app-runtime/plan.ts'
import type { SourceDirectory } from '../source.ts'

/** A class with a `main`. */
export interface MainClass {
  /** With its package: `org.example.Main`. */
  readonly name: string
  readonly file: string
  /** The file whose code listens; null if none is known to. */
  readonly listening: string | null
}

/** Matches code that listens. */
const LISTENS =
  /\bSpringApplication(?:Builder)?\b|@SpringBootApplication|\brunApplication<|\bHttpServer\.create|\bHttpsServer\.create|\bJavalin\.(?:create|start)|\bstatic spark\.Spark\b|\bSpark\.(?:port|get|init)\(|\bMicronaut\.(?:run|build)\(|\bQuarkus\.run\(|\bVertx\.(?:vertx|clusteredVertx)\(|\bembeddedServer\(|\bEngineMain\b|\bUndertow\.builder\(|\bnew Server\(|\bServerSocket(?:Channel)?\(|\bServerSocketChannel\.open|\bWebServer\.(?:builder|create)\(|\bnew Tomcat\(|\bServerBootstrap\(|\bextends Application<|\bHttpServerFactory\b|\bServer\.builder\(|\bServerBuilder\b|\brunApp\(|\.asServer\(/

/** Most files that are read, likeliest first. */
const MAX_FILES = 500

const LIKELY = /(?:Application|App|Main|Server|Launcher|Bootstrap|Starter)\.(?:java|kt)$/i

/** Finds the classes with a `main` below a directory, those that listen first. */
export async function findMainClasses(
  directory: SourceDirectory,
  isCode: (path: string) => boolean,
): Promise<MainClass[]> {
  const paths = directory.files
    .filter((path) => /\.(?:java|kt)$/.test(path) && isCode(path))
    .sort((a, b) => Number(LIKELY.test(b)) - Number(LIKELY.test(a)))
    .slice(0, MAX_FILES)
  const found: { name: string; file: string; listens: boolean }[] = []
  let elsewhere: string | null = null
  for (const path of paths) {
    const text = (await directory.code(path)).replace(/^[ \t]*(?:\/\/|\*).*$/gm, '')
    const listens = LISTENS.test(text)
    const name = mainClassOf(path, text)
    if (name !== null) found.push({ name, file: path, listens })
    else if (listens) elsewhere ??= path
  }
  const listening = found.filter(({ listens }) => listens)
  const others = found.filter(({ listens }) => !listens)
  // Of several classes only one may be what starts the code that listens.
  const called = listening.length === 0 ? elsewhere : null
  return [
    ...listening.map(({ name, file }) => ({ name, file, listening: file })),
    ...others.map(({ name, file }, index) => ({ name, file, listening: index === 0 ? called : null })),
  ]
}

/** Returns the name of the class with a file's `main`; null if it has none. */
function mainClassOf(path: string, text: string): string | null {
  const isKotlin = path.endsWith('.kt')
  const isMain = isKotlin
    ? /^(?:suspend\s+)?fun main\(/m.test(text) || /@JvmStatic\s+fun main\(/.test(text)
    : /\bstatic\s+(?:final\s+)?void\s+main\s*\(|\bvoid main\(\s*\)\s*(?:throws [\w., ]+)?\{/.test(text)
  if (!isMain) return null
  const base = path.slice(path.lastIndexOf('/') + 1).replace(/\.(?:java|kt)$/, '')
  const isTopLevel = isKotlin && /^(?:suspend\s+)?fun main\(/m.test(text)
  const stated = /@file:JvmName\("(\w+)"\)/.exec(text)?.[1]
  const name = isTopLevel ? (stated ?? `${base[0]?.toUpperCase()}${base.slice(1)}Kt`) : base
  const namespace = /^\s*package\s+([\w.]+)/m.exec(text)?.[1]
  return namespace === undefined ? name : `${namespace}.${name}`
}

/** Returns where a main class listens, or is. */
export const evidenceOf = async (
  main: MainClass | undefined,
  directory: SourceDirectory,
): Promise<Evidence[]> =>
  main === undefined
    ? []
    : [
        await (main.listening === null
          ? directory.evidence(main.file, /\bmain\s*\(/)
          : directory.evidence(main.listening, LISTENS)),
      ]
