import { posix } from 'node:path'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import { type Candidate, type Provider, startCommand } from '../candidate.ts'
import { evidenceOf, findMainClasses, type JavaBuild, pinnedJava } from '../java/builds.ts'
import { gradleBuild } from '../java/gradle.ts'
import { mavenBuild } from '../java/maven.ts'
import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'
import { chooseTools, needsOf, type ToolNeed } from '../versions.ts'

const RUNS = /(?:^|[\s/;&])(?:java|mvn|mvnw|gradle|gradlew|kotlin)\b|\bbuild\/install\//

/** Frameworks: what names them in a build's files, what the log calls them, and how they take their port. */
const FRAMEWORKS: readonly { pattern: RegExp; name: string; variables?: string }[] = [
  { pattern: /quarkus/, name: 'Quarkus' },
  {
    ...{ pattern: /spring-boot|springframework\.boot/, name: 'Spring Boot' },
    variables: 'SERVER_ADDRESS=$HOST SERVER_PORT=$PORT',
  },
  {
    ...{ pattern: /micronaut/, name: 'Micronaut' },
    variables: 'MICRONAUT_SERVER_HOST=$HOST MICRONAUT_SERVER_PORT=$PORT',
  },
  { pattern: /helidon/, name: 'Helidon', variables: 'SERVER_HOST=$HOST SERVER_PORT=$PORT' },
  { pattern: /\bjavalin\b/, name: 'Javalin' },
  { pattern: /spark-core/, name: 'Spark' },
  { pattern: /vertx/, name: 'Vert.x' },
  { pattern: /\bktor\b/, name: 'Ktor' },
  { pattern: /http4k/, name: 'http4k' },
  { pattern: /dropwizard/, name: 'Dropwizard' },
  { pattern: /\bjooby\b/, name: 'Jooby' },
  { pattern: /undertow/, name: 'Undertow' },
]

/** Builds that berth does not do itself, and what to write. */
const FOREIGN: readonly [file: string, tool: string, berthJson: string][] = [
  [
    'build.sbt',
    'sbt',
    '{"build": "sbt -batch stage", "start": "target/universal/stage/bin/NAME -Dhttp.port=$PORT"}',
  ],
  [
    'project.clj',
    'Leiningen',
    '{"build": "lein uberjar", "start": "java -jar target/uberjar/NAME-standalone.jar"}',
  ],
  ['deps.edn', 'the Clojure command-line tools', '{"start": "clojure -M -m NAMESPACE"}'],
]

/** Java and Kotlin: a build by Maven or Gradle, or files with a main class. */
export const java: Provider = {
  name: 'java',
  marks:
    /^(?:pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|build\.sbt|project\.clj|deps\.edn|(?:Main|App|Server|Application)\.java)$/,
  async look(directory, machine) {
    const maven = await mavenBuild(directory)
    const gradle = await gradleBuild(directory)
    // Of two builds the one with a wrapper, else Maven's.
    const isGradle = maven === null || (gradle !== null && !directory.has('mvnw') && directory.has('gradlew'))
    const found = isGradle ? gradle : maven
    if (found !== null) return [await candidateOf(found, directory, machine)]
    const foreign = FOREIGN.find(([file]) => directory.has(file))
    if (foreign === undefined) return loose(directory, machine)
    const [file, tool, berthJson] = foreign
    return [
      {
        ...{ kind: tool, strength: 'none' },
        obstacle: `There is ${file}, which berth does not build by itself. Where ${tool} is installed, write into berth.json: ${berthJson}.`,
        evidence: [await directory.evidence(file)],
      },
    ]
  },
}

async function candidateOf(
  found: JavaBuild,
  directory: SourceDirectory,
  machine: Machine,
): Promise<Candidate> {
  const framework = FRAMEWORKS.find(({ pattern }) => pattern.test(found.text))
  const title = found.isKotlin ? 'Kotlin' : 'Java'
  const { start, build, obstacle } = found
  const pin = await pinnedJava(directory)
  const tools = [...found.tools, ...(pin === null ? [] : [pin])]
  const variables = framework?.variables === undefined ? '' : `${framework.variables} `
  return {
    kind: framework === undefined ? `${title} (${found.tool})` : `${title} (${framework.name})`,
    strength: start === null ? 'none' : found.listens ? 'proven' : 'stated',
    ...{ build, tools },
    start: start === null ? null : startCommand(`${variables}${start}`),
    obstacle: `There is ${found.evidence[0]?.file ?? 'a build'}, but ${obstacle ?? 'nothing says how it starts'}.`,
    covers: found.covers,
    evidence: found.evidence,
    runs: RUNS,
    variables: await variablesOf(tools, machine),
  }
}

/** Returns the variables of the Java Virtual Machine: the chosen JDK, and the server's memory, which it cannot see itself. */
async function variablesOf(tools: readonly ToolNeed[], machine: Machine): Promise<Record<string, string>> {
  const chosen = await chooseTools(
    tools.filter(({ name }) => name === 'java'),
    machine,
  )
  const [bin] = chosen.path
  const { memoryBytes } = machine
  return {
    ...(bin === undefined ? {} : { JAVA_HOME: posix.dirname(bin) }),
    ...(memoryBytes === null
      ? {}
      : { JAVA_TOOL_OPTIONS: `-XX:MaxRAM=${Math.floor(memoryBytes / 2 ** 20)}m -XX:MaxRAMPercentage=60` }),
  }
}

/** Directories of code whose files are in directories of their packages. Elsewhere they are of another build, or an example. */
const ROOTS = /^(?:(?:src|source|app|java)(?:\/main)?(?:\/java)?)?$/

/** Files with a main class and no build: all of them are compiled, with the jars of `lib`. */
async function loose(directory: SourceDirectory, machine: Machine): Promise<Candidate[]> {
  const BUILDS = ['pom.xml', 'build.gradle', 'build.gradle.kts', 'build.sbt']
  if ([directory, ...directory.above].some((one) => one.first(BUILDS) !== null)) return []
  const files = directory.files.filter((path) => path.endsWith('.java') && !/(?:^|\/)\w*test\//i.test(path))
  const [main] = await findMainClasses(directory, (path) => files.includes(path))
  if (main === undefined || !main.file.endsWith('.java')) return []
  // Files elsewhere belong to it only if they are in packages of the same root, which is a usual one.
  const depth = main.name.split('.').length
  const root = main.file.split('/').slice(0, -depth).join('/')
  if (!ROOTS.test(root)) return []
  const own = files.filter((path) => root === '' || path.startsWith(`${root}/`))
  const tools = needsOf('java', [await pinnedJava(directory)])
  const classes = directory.files.some((path) => /^lib\/[^/]+\.jar$/.test(path)) ? 'out:lib/*' : 'out'
  return [
    {
      kind: 'Java',
      strength: main.listening === null ? 'weak' : 'proven',
      build: `javac -encoding UTF-8 -d out${classes === 'out' ? '' : " -cp 'lib/*'"} ${shellQuote(own)}`,
      start: startCommand(`exec java -cp ${shellQuote([classes])} ${shellQuote([main.name])}`),
      tools,
      evidence: await evidenceOf(main, directory),
      runs: RUNS,
      variables: await variablesOf(tools, machine),
    },
  ]
}
