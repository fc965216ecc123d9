import { posix } from 'node:path'
import { fieldsOf } from '../../../runtime/is-object.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, type ToolNeed } from '../versions.ts'
import {
  compilesFor,
  evidenceOf,
  findMainClasses,
  type JavaBuild,
  type MainClass,
  ofVersion,
  quarkusStart,
  runnableJar,
  wrapperOf,
} from './builds.ts'

/** A project of a Gradle build. */
interface GradleProject {
  /** Its directory, relative to that of the build; empty for it itself. */
  readonly path: string
  /** Its build script's name; null if it has none. */
  readonly file: string | null
  /** Its build script, without comments, and the plugins that it takes from the version catalogue. */
  readonly script: string
}

const SETTINGS = ['settings.gradle.kts', 'settings.gradle']
const SCRIPTS = ['build.gradle.kts', 'build.gradle']

/** Matches the plugins that decide how a project runs. */
const PLUGINS = {
  spring: /org\.springframework\.boot\b(?!.*\bapply false\b)/,
  quarkus: /\bio\.quarkus\b(?!.*\bapply false\b)/,
  application:
    /\b(?:id|alias|apply)\b[^\n]*(?<!com\.android\.)\bapplication\b|^\s*[`]?application[`]?\s*(?:\{|$)|['"]application['"]|io\.ktor\.plugin|io\.micronaut\.(?:minimal\.)?application|java-application/m,
  shadow: /com\.(?:github\.johnrengelman|gradleup)\.shadow|\bshadowJar\b/,
  android: /com\.android\.application/,
  war: /['"]war['"]|^\s*war\s*$/m,
} as const

/** Returns how the Gradle build of a directory runs; null if there is none. */
export async function gradleBuild(directory: SourceDirectory): Promise<JavaBuild | null> {
  const projects = await readProjects(directory)
  const [root] = projects
  const app = await appOf(projects, directory)
  if (root === undefined || app === null || projects.every(({ file }) => file === null)) return null
  const { project, mains } = app
  const { path, script } = project
  const [main] = mains
  const file = posix.join(path, project.file ?? root.file ?? 'build.gradle')
  const hasJar = directory.has('gradle/wrapper/gradle-wrapper.jar')
  const wrapper = hasJar ? await wrapperOf(directory, 'gradlew') : null
  const task = (name: string): string =>
    `${wrapper ?? 'gradle'} --no-daemon -q ${path === '' ? '' : `:${path.replaceAll('/', ':')}:`}${name}`
  const output = posix.join(path, 'build')
  const has = (plugin: keyof typeof PLUGINS): boolean => PLUGINS[plugin].test(script)
  const base = {
    tool: 'Gradle' as const,
    start: null,
    listens: has('quarkus') || (main?.listening ?? null) !== null,
    isKotlin: main?.file.endsWith('.kt') ?? false,
    text: projects.map((one) => one.script).join('\n'),
    covers: projects.map((one) => one.path).filter(Boolean),
    tools: [
      (await javaOf(project, file, directory)) ?? (await javaOf(root, file, directory)) ?? anyVersion('java'),
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
  if (has('android')) return { ...base, build: null, obstacle: 'it is an app for Android' }
  if (has('quarkus')) return { ...base, build: task('quarkusBuild'), start: quarkusStart(output) }
  if (has('spring') || (has('shadow') && !has('application'))) {
    const made = has('spring') ? (has('war') ? 'bootWar' : 'bootJar') : 'shadowJar'
    return { ...base, ...runnableJar(`${output}/libs`, `rm -rf ${output}/libs && ${task(made)}`) }
  }
  if (has('application')) {
    const options = main !== undefined && /\bEngineMain\b/.test(script) ? ' -host=$HOST -port=$PORT' : ''
    return {
      ...base,
      build: `rm -rf ${output}/install && ${task('installDist')}`,
      start: `exec "$(ls ${output}/install/*/bin/* | grep -v '\\.bat$' | head -n 1)"${options}`,
    }
  }
  if (has('war'))
    return {
      ...{ ...base, build: task('war') },
      obstacle:
        'it makes a war, which needs a server such as Jetty or Tomcat. Write a "start" that runs a server with the war',
    }
  return {
    ...{ ...base, build: task('assemble') },
    obstacle: `${file} has none of the plugins "application", "org.springframework.boot", "io.quarkus" and "com.gradleup.shadow", which say how it runs${main === undefined ? '' : `. Its main class is ${main.name}`}`,
  }
}

/** Returns the project that is the app: one that runs, and of several one that listens. */
async function appOf(
  projects: readonly GradleProject[],
  directory: SourceDirectory,
): Promise<{ project: GradleProject; mains: MainClass[] } | null> {
  const found: { project: GradleProject; mains: MainClass[]; order: number }[] = []
  for (const project of projects) {
    const prefix = project.path === '' ? '' : `${project.path}/`
    // What is below the build's own directory may be another project's.
    const others = prefix === '' ? projects.filter(({ path }) => path !== '') : []
    const mains = await findMainClasses(
      directory,
      (path) =>
        path.startsWith(prefix) &&
        !/(?:^|\/)(?:\w*[tT]est|build|buildSrc)\//.test(path.slice(prefix.length)) &&
        !others.some((one) => path.startsWith(`${one.path}/`)),
    )
    const runs = Object.values(PLUGINS).some((plugin) => plugin.test(project.script))
    const listens = PLUGINS.quarkus.test(project.script) || mains.some(({ listening }) => listening !== null)
    found.push({ project, mains, order: (runs ? 0 : 2) + (listens ? 0 : 1) })
  }
  return found.sort((a, b) => a.order - b.order)[0] ?? null
}

/** Returns the projects of a build, the first one its own. */
async function readProjects(directory: SourceDirectory): Promise<GradleProject[]> {
  const settings = uncommented(await directory.textOf(...SETTINGS))
  const included = [...settings.matchAll(/^\s*include\b((?:[\s(,]*["'][^"']+["'])+)/gm)].flatMap(
    ([, names = '']) =>
      [...names.matchAll(/["']:?([^"']+)["']/g)].map(([, name = '']) => name.replaceAll(':', '/')),
  )
  const catalog = await pluginsOf(directory)
  const projects: GradleProject[] = []
  for (const path of ['', ...included]) {
    const below = directory.at(path)
    const file = below.first(SCRIPTS)
    const script = uncommented(await below.textOf(...SCRIPTS))
    const named = [...script.matchAll(/alias\(\s*libs\.plugins\.([\w.]+)\s*\)(.*)$/gm)].map(
      ([, name = '', rest = '']) => `id("${catalog.get(name) ?? name}")${rest}`,
    )
    projects.push({ path, file, script: [script, ...named].join('\n') })
  }
  return projects
}

const uncommented = (text: string): string => text.replace(/^[ \t]*\/\/.*$/gm, '')

/** Returns the plugins of the version catalogue by the names that scripts have for them. */
async function pluginsOf(directory: SourceDirectory): Promise<Map<string, string>> {
  const catalog = await directory.tables('gradle/libs.versions.toml')
  return new Map(
    Object.entries(fieldsOf(catalog?.plugins)).flatMap(([name, value]) => {
      const id = typeof value === 'string' ? value.split(':')[0] : fieldsOf(value).id
      return typeof id === 'string' ? [[name.replace(/[-_]/g, '.'), id] as const] : []
    }),
  )
}

/**
 * Returns the need of the Java that a project's script asks for; null if it does not.
 *
 * @param file that the need names
 */
async function javaOf(
  { script }: GradleProject,
  file: string,
  directory: SourceDirectory,
): Promise<ToolNeed | null> {
  const exact = /(?:JavaLanguageVersion\.of|\bjvmToolchain)\(\s*["']?(\d+)/.exec(script)?.[1]
  if (exact !== undefined) {
    // Gradle fetches it itself.
    const isFetched = /foojay-resolver/.test(await directory.textOf(...SETTINGS))
    return ofVersion(exact, directory.pathOf(file), !isFetched)
  }
  const least =
    /\b(?:source|target)Compatibility\s*=?\s*\(?\s*["']?(?:JavaVersion\.)?(?:toVersion\(["']?)?(?:VERSION_)?([\d._]+)/.exec(
      script,
    )?.[1]
  return least === undefined ? null : compilesFor(least.replaceAll('_', '.'), directory.pathOf(file))
}
