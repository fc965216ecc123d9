import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import { readMavenWrapper, WRAPPER_JAR, WRAPPER_SETTINGS } from '../../registries/maven-wrapper.ts'
import type { SourceDirectory } from '../source.ts'
import { readPin, type ToolNeed } from '../versions.ts'

/** How a Java app is built and run. */
export interface JavaBuild {
  /** The build's tool, for people. */
  readonly tool: 'Maven' | 'Gradle'
  readonly build: string | null
  /** Null if it is not known. */
  readonly start: string | null
  /** Why there is no start: a clause. */
  readonly obstacle?: string
  /** Whether its code is known to listen. */
  readonly listens: boolean
  /** Whether its main class is of Kotlin. */
  readonly isKotlin: boolean
  /** What names the frameworks that it uses. */
  readonly text: string
  readonly covers: readonly string[]
  readonly tools: readonly ToolNeed[]
  readonly evidence: readonly Evidence[]
}

/**
 * Returns how a wrapper's script runs, also one that is not executable or has the line ends of Windows; null if there is none.
 * Maven's takes its jar from where its settings say; without that setting it takes the same one through the relay.
 */
export async function wrapperOf(
  directory: SourceDirectory,
  name: 'mvnw' | 'gradlew',
): Promise<string | null> {
  const script = await directory.text(name)
  if (script === null) return null
  const isOfMaven = name === 'mvnw' && !directory.has(WRAPPER_JAR)
  const settings = isOfMaven ? await directory.textOf(WRAPPER_SETTINGS) : ''
  const filters = [
    ...(script.includes('\r\n') ? ["tr -d '\\r'"] : []),
    ...(readMavenWrapper(script, settings).isUsualJar ? ["sed 's/wrapperUrl)/no&/'"] : []),
  ]
  const [first, ...more] = filters
  if (first === undefined) return `sh ./${name}`
  return `sh -c "$(${[`${first} <${name}`, ...more].join(' | ')})" ./${name}`
}

/** Returns the start of what Quarkus builds below a directory. */
export const quarkusStart = (output: string): string =>
  `QUARKUS_HTTP_HOST=$HOST QUARKUS_HTTP_PORT=$PORT exec java -jar ${shellQuote([`${output}/quarkus-app/quarkus-run.jar`])}`

/**
 * Returns how a jar or war that runs by itself is built and started: the largest of a directory whose manifest names a main
 * class, since that has the packages in it.
 *
 * @param build makes it in that directory, which has no other one
 */
export const runnableJar = (folder: string, build: string): Pick<JavaBuild, 'build' | 'start'> => ({
  build: `${build} && (cd ${shellQuote([folder])} && for jar in $(ls -S *.[jw]ar); do jar xf $jar META-INF/MANIFEST.MF && grep -q ^Main-Class META-INF/MANIFEST.MF && ln -s $jar runnable.jar && break; done)`,
  start: `exec java -jar ${shellQuote([`${folder}/runnable.jar`])}`,
})

/** Returns the number by which a version of Java is called: 8 of `1.8`, 17 of `17.0.2`. */
const featureOf = (version: string): number => {
  const [first = 0, second = 0] = version.split(/[._+-]/).map(Number)
  return first === 1 ? second : first
}

/** Returns a need of a JDK that can compile for a version. */
export const compilesFor = (wanted: string, wantedBy: string): ToolNeed => ({
  ...{ name: 'java', wanted, wantedBy, isStrict: true },
  fits: (version) => featureOf(version) >= featureOf(wanted),
})

/** Returns a need of a JDK of one version. */
export const ofVersion = (wanted: string, wantedBy: string, isStrict: boolean): ToolNeed => ({
  ...{ name: 'java', wanted, wantedBy, isStrict },
  fits: (version) => featureOf(version) === featureOf(wanted),
})

/** Returns the version that `.java-version`, `system.properties` or a version manager's file asks for; null if none does. */
export async function pinnedJava(directory: SourceDirectory): Promise<ToolNeed | null> {
  for (const file of ['system.properties', '.sdkmanrc']) {
    const line = /^\s*java(?:\.runtime\.version)?\s*=\s*(\d[\d.]*)/m.exec(await directory.textOf(file))
    if (line?.[1] !== undefined) return ofVersion(line[1], directory.pathOf(file), false)
  }
  const pin = await readPin(directory, 'java')
  return pin === null ? null : ofVersion(pin.wanted, pin.wantedBy, false)
}

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

/** Most files that are read, likeliest first. @bound peer */
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
