import { posix } from 'node:path'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import { readMavenWrapper, WRAPPER_JAR, WRAPPER_SETTINGS } from '../../registries/maven-wrapper.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, type ToolNeed } from '../versions.ts'
import { javaOf as gradleJavaOf, PLUGINS, readProjects } from './gradle.ts'
import { findMainClasses, LISTENS, type MainClass } from './main-classes.ts'
import { elementOf, hasDependencies, javaOf, type MavenModule, readModules, uses } from './maven.ts'
import { compilesFor, ofVersion } from './versions.ts'

/** How a Java app is built and run. */
export interface JavaBuild {
  /** The build's tool, for people. */
  readonly tool: 'Maven' | 'Gradle'
  readonly build: string | null
  /** With `{java}` in place of `java` and the options of the app; null if it is not known. */
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

const QUARKUS = /<artifactId>\s*quarkus-maven-plugin\s*</

/** Matches what makes a jar that runs by itself. */
const RUNNABLE = /spring-boot-maven-plugin|maven-shade-plugin|maven-assembly-plugin|micronaut-|helidon-/

/** Returns how the Maven build of a directory runs; null if there is none. */
export async function mavenBuild(directory: SourceDirectory): Promise<JavaBuild | null> {
  const modules = await readModules(directory)
  if (modules.length === 0) return null
  const { module, mains } = await appModule(modules, directory)
  const at = module.directory
  const [main] = mains
  const pom = posix.join(at, 'pom.xml')
  const java = javaOf(module)
  const wrapper = await wrapperOf(directory, 'mvnw')
  const command = `${wrapper ?? 'mvn'} -B -q -DskipTests`
  const only = at === '' ? '' : ` -pl ${shellQuote([at])} -am`
  const target = posix.join(at, 'target')
  const base = {
    tool: 'Maven' as const,
    listens: uses(module, QUARKUS) || (main?.listening ?? null) !== null,
    isKotlin: main?.file.endsWith('.kt') ?? false,
    text: [module.pom, ...module.above].join('\n'),
    covers: modules.map((one) => one.directory).filter(Boolean),
    tools: [
      ...(java === null ? [anyVersion('java')] : [compilesFor(java, posix.join(directory.path, pom))]),
      ...(wrapper === null ? [anyVersion('mvn')] : []),
    ],
    evidence: [
      await directory.evidence(
        pom,
        /<artifactId>.*(?:spring-boot|quarkus|micronaut|shade)|<mainClass>|<packaging>/,
      ),
      ...(await evidenceOf(main, directory)),
    ],
  }
  if (uses(module, QUARKUS))
    return {
      ...base,
      build: `${command} package${only}`,
      start: `QUARKUS_HTTP_HOST=$HOST QUARKUS_HTTP_PORT=$PORT exec {java} -jar ${shellQuote([`${target}/quarkus-app/quarkus-run.jar`])}`,
    }
  const isSpring = uses(module, /spring-boot-maven-plugin/)
  if (elementOf(module, 'packaging') === 'war' && !isSpring)
    return { ...base, ...(await warBuild(module, directory, command, only, base.tools)) }
  const mainClass =
    elementOf(module, 'mainClass') ?? elementOf(module, 'exec.mainClass') ?? main?.name ?? null
  const stated = /<mainClass>|<Main-Class>|<main.class>/i.test(module.pom)
  if (uses(module, RUNNABLE) || (stated && !hasDependencies(module))) {
    const clean = `rm -f ${target}/*.[jw]ar`
    return {
      ...base,
      build: `${clean} && ${command} package${only} && ${runnableJar(target)}`,
      start: `exec {java} -jar ${shellQuote([`${target}/runnable.jar`])}`,
    }
  }
  if (mainClass === null)
    return {
      ...base,
      ...{ build: `${command} package${only}`, start: null },
      obstacle: `${modules.length === 1 ? 'its code has' : 'the code of its modules has'} no class with a main method`,
    }
  // Its jar has neither the packages that it depends on nor the name of its main class.
  const copy = hasDependencies(module) ? ' dependency:copy-dependencies -DincludeScope=runtime' : ''
  return {
    ...base,
    build: `${command} package${copy}${only}`,
    start: `exec {java} -cp ${shellQuote([`${target}/classes:${target}/dependency/*`])} ${shellQuote([mainClass])}`,
  }
}

/** The version of Jetty that serves a war whose build names no server, and the oldest Java for it. */
const JETTY = { version: '12.1.5', java: '17' }

async function warBuild(
  module: MavenModule,
  directory: SourceDirectory,
  command: string,
  only: string,
  tools: readonly ToolNeed[],
): Promise<Pick<JavaBuild, 'build' | 'start' | 'tools'>> {
  const build = `${command} package${only}`
  const jetty = (goal: string) => `${command} ${goal} -Djetty.http.port=$PORT -Djetty.http.host=$HOST${only}`
  if (uses(module, /jetty(?:-ee\d+)?-maven-plugin/)) return { build, start: jetty('jetty:run'), tools }
  if (uses(module, /tomcat7-maven-plugin/))
    return { build, start: `${command} tomcat7:run -Dmaven.tomcat.port=$PORT${only}`, tools }
  const edition = await editionOf(module, directory)
  const plugin = `org.eclipse.jetty.${edition}:jetty-${edition}-maven-plugin:${JETTY.version}`
  return {
    // Its packages come with the build, not while the start is waited for.
    build: `${command} package ${plugin}:help${only}`,
    start: jetty(`${plugin}:run-war`),
    tools: [...tools, compilesFor(JETTY.java, 'a war without a server')],
  }
}

/** Returns the edition of Jakarta EE that a war is for, as Jetty calls it. The packages are `javax` up to the eighth. */
async function editionOf(module: MavenModule, directory: SourceDirectory): Promise<'ee8' | 'ee9' | 'ee10'> {
  const api = /<artifactId>\s*(?:jakarta|javax)\.servlet-api\s*<\/artifactId>\s*<version>\s*(\d+)/
  const major = Number(api.exec([module.pom, ...module.above].join('\n'))?.[1] ?? 0)
  if (major > 0) return major >= 6 ? 'ee10' : major === 5 ? 'ee9' : 'ee8'
  const descriptor = await directory.text(posix.join(module.directory, 'src/main/webapp/WEB-INF/web.xml'))
  const isOld = uses(module, /\bjavax\./) || /java\.sun\.com|xmlns\.jcp\.org/.test(descriptor ?? '')
  return isOld ? 'ee8' : 'ee10'
}

/** Returns the module that is the app: one that listens, else one with a main class. */
async function appModule(
  modules: readonly MavenModule[],
  directory: SourceDirectory,
): Promise<{ module: MavenModule; mains: MainClass[] }> {
  const found: { module: MavenModule; mains: MainClass[]; order: number }[] = []
  for (const [index, module] of modules.entries()) {
    const source = posix.join(module.directory, elementOf(module, 'sourceDirectory') ?? 'src/main')
    const mains = await findMainClasses(directory, (path) => path.startsWith(`${source}/`))
    const isQuarkus = QUARKUS.test(module.pom) && !/<packaging>\s*pom\s*</.test(module.pom)
    const isWar = /<packaging>\s*war\s*</.test(module.pom)
    const likely =
      isQuarkus || mains.some(({ listening }) => listening !== null)
        ? 0
        : isWar
          ? 1
          : mains.length > 0
            ? 2
            : 3
    found.push({ module, mains, order: likely * 1000 + index })
  }
  const [first] = found.sort((a, b) => a.order - b.order)
  if (first === undefined) throw new TypeError('A Maven build has a module.')
  return first
}

/** Returns how the Gradle build of a directory runs; null if there is none. */
export async function gradleBuild(directory: SourceDirectory): Promise<JavaBuild | null> {
  const projects = await readProjects(directory)
  const [root] = projects
  if (root === undefined || projects.every(({ file }) => file === null)) return null
  const candidates: { project: (typeof projects)[number]; mains: MainClass[]; order: number }[] = []
  for (const [index, project] of projects.entries()) {
    const prefix = project.directory === '' ? '' : `${project.directory}/`
    const others = projects
      .map((one) => one.directory)
      .filter((one) => one !== '' && one !== project.directory)
    const mains = await findMainClasses(
      directory,
      (path) =>
        path.startsWith(prefix) &&
        !/(?:^|\/)(?:\w*[tT]est|build|buildSrc)\//.test(path.slice(prefix.length)) &&
        !(prefix === '' && others.some((one) => path.startsWith(`${one}/`))),
    )
    const runs = Object.values(PLUGINS).some((plugin) => plugin.test(project.script))
    const listens = PLUGINS.quarkus.test(project.script) || mains.some(({ listening }) => listening !== null)
    candidates.push({ project, mains, order: (runs ? 0 : 2000) + (listens ? 0 : 1000) + index })
  }
  const [first] = candidates.sort((a, b) => a.order - b.order)
  if (first === undefined) return null
  const { project, mains } = first
  const { directory: at, script } = project
  const [main] = mains
  const file = posix.join(at, project.file ?? root.file ?? 'build.gradle')
  const java = gradleJavaOf(project) ?? gradleJavaOf(root)
  const fetches = /foojay-resolver/.test(await directory.textOf(['settings.gradle.kts', 'settings.gradle']))
  const hasJar = directory.has('gradle/wrapper/gradle-wrapper.jar')
  const wrapper = hasJar ? await wrapperOf(directory, 'gradlew') : null
  const whole = posix.join(directory.path, file)
  const task = (name: string): string =>
    `${wrapper ?? 'gradle'} --no-daemon -q ${at === '' ? '' : `:${at.replaceAll('/', ':')}:`}${name}`
  const output = posix.join(at, 'build')
  const base = {
    tool: 'Gradle' as const,
    listens: PLUGINS.quarkus.test(script) || (main?.listening ?? null) !== null,
    isKotlin: main?.file.endsWith('.kt') ?? false,
    text: projects.map((one) => one.script).join('\n'),
    covers: projects.map((one) => one.directory).filter(Boolean),
    tools: [
      java === null
        ? anyVersion('java')
        : java.isExact
          ? ofVersion(java.version, whole, !fetches)
          : compilesFor(java.version, whole),
      ...(wrapper === null ? [anyVersion('gradle')] : []),
    ],
    evidence: [
      await directory.evidence(
        file,
        /org\.springframework\.boot|io\.quarkus|\bapplication\b|shadow|libs\.plugins/,
      ),
      ...(await evidenceOf(main, directory)),
    ],
  }
  if (PLUGINS.android.test(script))
    return { ...base, build: null, start: null, obstacle: 'it is an app for Android' }
  if (PLUGINS.quarkus.test(script))
    return {
      ...base,
      build: task('quarkusBuild'),
      start: `QUARKUS_HTTP_HOST=$HOST QUARKUS_HTTP_PORT=$PORT exec {java} -jar ${shellQuote([`${output}/quarkus-app/quarkus-run.jar`])}`,
    }
  const isSpring = PLUGINS.spring.test(script)
  if (isSpring || (PLUGINS.shadow.test(script) && !PLUGINS.application.test(script))) {
    const made = isSpring ? (PLUGINS.war.test(script) ? 'bootWar' : 'bootJar') : 'shadowJar'
    return {
      ...base,
      build: `rm -rf ${output}/libs && ${task(made)} && ${runnableJar(`${output}/libs`)}`,
      start: `exec {java} -jar ${shellQuote([`${output}/libs/runnable.jar`])}`,
    }
  }
  if (PLUGINS.application.test(script)) {
    const options = main !== undefined && /\bEngineMain\b/.test(script) ? ' -host=$HOST -port=$PORT' : ''
    return {
      ...base,
      build: `rm -rf ${output}/install && ${task('installDist')}`,
      start: `exec "$(ls ${output}/install/*/bin/* | grep -v '\\.bat$' | head -n 1)"${options}`,
    }
  }
  if (PLUGINS.war.test(script))
    return {
      ...base,
      ...{ build: task('war'), start: null },
      obstacle:
        'it makes a war, which needs a server such as Jetty or Tomcat. Write a "start" that runs a server with the war',
    }
  return {
    ...base,
    ...{ build: task('assemble'), start: null },
    obstacle: `${file} has none of the plugins "application", "org.springframework.boot", "io.quarkus" and "com.gradleup.shadow", which say how it runs${main === undefined ? '' : `. Its main class is ${main.name}`}`,
  }
}

/**
 * Returns how a wrapper's script runs, also one that is not executable or has the line ends of Windows; null if there is none.
 * Maven's takes its jar from where its settings say; without that setting it takes the same one through the relay.
 */
async function wrapperOf(directory: SourceDirectory, name: 'mvnw' | 'gradlew'): Promise<string | null> {
  const script = await directory.text(name)
  if (script === null) return null
  const isOfMaven = name === 'mvnw' && !directory.has(WRAPPER_JAR)
  const settings = isOfMaven ? ((await directory.text(WRAPPER_SETTINGS)) ?? '') : ''
  const filters = [
    ...(script.includes('\r\n') ? ["tr -d '\\r'"] : []),
    ...(readMavenWrapper(script, settings).isUsualJar ? ["sed 's/wrapperUrl)/no&/'"] : []),
  ]
  const [first, ...more] = filters
  if (first === undefined) return `sh ./${name}`
  return `sh -c "$(${[`${first} <${name}`, ...more].join(' | ')})" ./${name}`
}

/** Returns a command that makes `runnable.jar` of the largest jar or war whose manifest names a main class. */
const runnableJar = (folder: string): string =>
  `(cd ${shellQuote([folder])} && for jar in $(ls -S | grep -E '\\.[jw]ar$' | grep -vE -- '-(sources|javadoc|tests|plain)\\.jar$|^original-'); do mkdir -p .manifest && (cd .manifest && jar xf "../$jar" META-INF/MANIFEST.MF && grep -q ^Main-Class: META-INF/MANIFEST.MF) && ln -sf "$jar" runnable.jar && break; done; rm -rf .manifest; [ -e runnable.jar ] || echo "No jar in ${folder} has a Main-Class in its manifest.")`

async function evidenceOf(main: MainClass | undefined, directory: SourceDirectory): Promise<Evidence[]> {
  if (main === undefined) return []
  return [
    main.listening === null
      ? await directory.evidence(main.file, /\bmain\s*\(/)
      : await directory.evidence(main.listening, LISTENS),
  ]
}
