import { posix } from 'node:path'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion } from '../versions.ts'
import {
  compilesFor,
  evidenceOf,
  findMainClasses,
  type JavaBuild,
  type MainClass,
  quarkusStart,
  runnableJar,
  wrapperOf,
} from './builds.ts'

/** A module of a Maven build. */
interface MavenModule {
  /** Its directory, relative to that of the build; empty for it itself. */
  readonly path: string
  readonly directory: SourceDirectory
  /** Its pom.xml, without comments, profiles and what it only manages. */
  readonly pom: string
  /** The pom.xml of the modules above it, nearest first. */
  readonly above: readonly string[]
}

/** Most modules of a build that are looked at. @bound peer */
const MAX_MODULES = 100

const QUARKUS = /<artifactId>\s*quarkus-maven-plugin\s*</

/** Matches what makes a jar that runs by itself. */
const RUNNABLE = /spring-boot-maven-plugin|maven-shade-plugin|maven-assembly-plugin|micronaut-|helidon-/

/** Returns how the Maven build of a directory runs; null if there is none. */
export async function mavenBuild(directory: SourceDirectory): Promise<JavaBuild | null> {
  const modules = await readModules(directory)
  const app = await appOf(modules, directory)
  if (app === null) return null
  const { module, mains } = app
  const [main] = mains
  const pom = posix.join(module.path, 'pom.xml')
  const java = javaOf(module)
  const wrapper = await wrapperOf(directory, 'mvnw')
  const only = module.path === '' ? '' : ` -pl ${shellQuote([module.path])} -am`
  const maven = (goals: string): string => `${wrapper ?? 'mvn'} -B -q -DskipTests ${goals}${only}`
  const target = posix.join(module.path, 'target')
  const base = {
    tool: 'Maven' as const,
    build: maven('package'),
    start: null,
    listens: uses(module, QUARKUS) || (main?.listening ?? null) !== null,
    isKotlin: main?.file.endsWith('.kt') ?? false,
    text: [module.pom, ...module.above].join('\n'),
    covers: modules.map(({ path }) => path).filter(Boolean),
    tools: [
      java === null ? anyVersion('java') : compilesFor(java, directory.pathOf(pom)),
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
  if (uses(module, QUARKUS)) return { ...base, start: quarkusStart(target) }
  if (elementOf(module, 'packaging') === 'war' && !uses(module, /spring-boot-maven-plugin/)) {
    const { needs = [], ...war } = await warBuild(module, maven)
    return { ...base, ...war, tools: [...base.tools, ...needs] }
  }
  const isStated = /<mainClass>|<Main-Class>|<main.class>/i.test(module.pom)
  if (uses(module, RUNNABLE) || (isStated && !hasDependencies(module)))
    return { ...base, ...runnableJar(target, `rm -f ${target}/*.[jw]ar && ${base.build}`) }
  const name = elementOf(module, 'mainClass') ?? elementOf(module, 'exec.mainClass') ?? main?.name
  if (name === undefined) {
    const whose = modules.length === 1 ? 'its code has' : 'the code of its modules has'
    return { ...base, obstacle: `${whose} no class with a main method` }
  }
  // Its jar has neither the packages that it depends on nor the name of its main class.
  const copy = hasDependencies(module) ? ' dependency:copy-dependencies -DincludeScope=runtime' : ''
  const classes = `${target}/classes:${target}/dependency/*`
  return {
    ...base,
    build: maven(`package${copy}`),
    start: `exec java -cp ${shellQuote([classes])} ${shellQuote([name])}`,
  }
}

/** Returns the modules of a build, the first one its own. */
async function readModules(directory: SourceDirectory): Promise<MavenModule[]> {
  const modules: MavenModule[] = []
  const add = async (path: string, above: readonly string[]): Promise<void> => {
    const text = await directory.text(posix.join(path, 'pom.xml'))
    if (text === null || modules.length >= MAX_MODULES || modules.some((one) => one.path === path)) return
    const pom = text
      .replace(/<!--[\s\S]*?-->/g, '')
      .replace(/<(profiles|dependencyManagement|pluginManagement)>[\s\S]*?<\/\1>/g, '')
    modules.push({ path, directory: directory.at(path), pom, above })
    for (const [, name = ''] of pom.matchAll(/<module>\s*([^<\s]+)\s*<\/module>/g)) {
      const to = posix.join(path, name.replace(/\/?pom\.xml$/, ''))
      if (!to.startsWith('..')) await add(to, [pom, ...above])
    }
  }
  await add('', [])
  return modules
}

/** Returns the module that is the app, one that listens before one with a main class; null if there is no module. */
async function appOf(
  modules: readonly MavenModule[],
  directory: SourceDirectory,
): Promise<{ module: MavenModule; mains: MainClass[] } | null> {
  const found: { module: MavenModule; mains: MainClass[]; order: number }[] = []
  for (const module of modules) {
    const source = posix.join(module.path, elementOf(module, 'sourceDirectory') ?? 'src/main')
    const mains = await findMainClasses(directory, (path) => path.startsWith(`${source}/`))
    const isQuarkus = QUARKUS.test(module.pom) && !/<packaging>\s*pom\s*</.test(module.pom)
    const listens = isQuarkus || mains.some(({ listening }) => listening !== null)
    const isWar = /<packaging>\s*war\s*</.test(module.pom)
    found.push({ module, mains, order: listens ? 0 : isWar ? 1 : mains.length > 0 ? 2 : 3 })
  }
  return found.sort((a, b) => a.order - b.order)[0] ?? null
}

/** The versions of Jetty that serve a war whose build names no server, by edition, which do not have the same ones. */
const JETTY = { ee8: '12.1.8', ee9: '12.1.5', ee10: '12.1.5' } as const

/** The oldest Java for them. */
const JAVA_OF_JETTY = '17'

/** Returns how a war is built and served. @param maven returns the command for goals */
async function warBuild(
  module: MavenModule,
  maven: (goals: string) => string,
): Promise<Pick<JavaBuild, 'build' | 'start'> & { needs?: JavaBuild['tools'] }> {
  const build = maven('package')
  const jetty = (goal: string) => maven(`${goal} -Djetty.http.port=$PORT -Djetty.http.host=$HOST`)
  if (uses(module, /jetty(?:-ee\d+)?-maven-plugin/)) return { build, start: jetty('jetty:run') }
  if (uses(module, /tomcat7-maven-plugin/))
    return { build, start: maven('tomcat7:run -Dmaven.tomcat.port=$PORT') }
  const edition = await editionOf(module)
  const plugin = `org.eclipse.jetty.${edition}:jetty-${edition}-maven-plugin:${JETTY[edition]}`
  return {
    // Its packages come with the build, not while the start is waited for.
    build: maven(`package ${plugin}:help`),
    start: jetty(`${plugin}:run-war`),
    needs: [compilesFor(JAVA_OF_JETTY, 'a war without a server')],
  }
}

/** Returns the edition of Jakarta EE that a war is for, as Jetty calls it. The packages are `javax` up to the eighth. */
async function editionOf(module: MavenModule): Promise<keyof typeof JETTY> {
  const api = /<artifactId>\s*(?:jakarta|javax)\.servlet-api\s*<\/artifactId>\s*<version>\s*(\d+)/
  const major = Number(api.exec([module.pom, ...module.above].join('\n'))?.[1] ?? 0)
  if (major > 0) return major >= 6 ? 'ee10' : major === 5 ? 'ee9' : 'ee8'
  const descriptor = await module.directory.textOf('src/main/webapp/WEB-INF/web.xml')
  const isOld = uses(module, /\bjavax\./) || /java\.sun\.com|xmlns\.jcp\.org/.test(descriptor)
  return isOld ? 'ee8' : 'ee10'
}

/** Returns an element's text in a module's pom.xml or in one above it, with a property in its place; undefined if there is none. */
function elementOf({ pom, above }: MavenModule, name: string): string | undefined {
  const find = (element: string): string | undefined => {
    const pattern = new RegExp(`<${RegExp.escape(element)}>\\s*([^<]+?)\\s*</`)
    return [pom, ...above].map((text) => pattern.exec(text)?.[1]).find((value) => value !== undefined)
  }
  const value = find(name)
  const property = /^\$\{([\w.-]+)\}$/.exec(value ?? '')?.[1]
  return property === undefined ? value : find(property)
}

/** Reports whether a module, or one above it, names a plugin or a parent. */
const uses = ({ pom, above }: MavenModule, pattern: RegExp): boolean =>
  [pom, ...above].some((text) => pattern.test(text))

/** Reports whether a module has dependencies that it needs to run. */
const hasDependencies = ({ pom }: MavenModule): boolean =>
  [...pom.matchAll(/<dependency>([\s\S]*?)<\/dependency>/g)].some(
    ([, text = '']) => !/<scope>\s*(?:test|provided|import)\s*</.test(text),
  )

/** Returns the oldest Java that a module is compiled for, as its file says it; null if none does. */
function javaOf(module: MavenModule): string | null {
  const compiler = ['release', 'target', 'source']
  const names = ['maven.compiler.release', 'java.version', 'maven.compiler.target', 'maven.compiler.source']
  const stated = [...names, ...compiler].map((name) => elementOf(module, name))
  return stated.find((version) => /^(?:1\.)?\d+$/.test(version ?? '')) ?? null
}
