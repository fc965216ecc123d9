import { fieldsOf } from '../../../runtime/is-object.ts'
import type { SourceDirectory } from '../source.ts'

/** A project of a Gradle build. */
export interface GradleProject {
  /** Relative to the directory of the build; empty for it itself. */
  readonly directory: string
  /** Its build script's name; null if it has none. */
  readonly file: string | null
  /** Its build script, without comments, and the plugins that it takes from the version catalogue. */
  readonly script: string
}

const SETTINGS = ['settings.gradle.kts', 'settings.gradle']
const SCRIPTS = ['build.gradle.kts', 'build.gradle']

/** Matches the plugins that decide how a project runs. */
export const PLUGINS = {
  spring: /org\.springframework\.boot\b(?!.*\bapply false\b)/,
  quarkus: /\bio\.quarkus\b(?!.*\bapply false\b)/,
  application:
    /\b(?:id|alias|apply)\b[^\n]*(?<!com\.android\.)\bapplication\b|^\s*[`]?application[`]?\s*(?:\{|$)|['"]application['"]|io\.ktor\.plugin|io\.micronaut\.(?:minimal\.)?application|java-application/m,
  shadow: /com\.(?:github\.johnrengelman|gradleup)\.shadow|\bshadowJar\b/,
  android: /com\.android\.application/,
  war: /['"]war['"]|^\s*war\s*$/m,
} as const

/** Returns the projects of a build, the first one its own. */
export async function readProjects(directory: SourceDirectory): Promise<GradleProject[]> {
  const settings = uncommented(await directory.textOf(SETTINGS))
  const included = [...settings.matchAll(/^\s*include\b((?:[\s(,]*["'][^"']+["'])+)/gm)].flatMap(
    ([, names = '']) =>
      [...names.matchAll(/["']:?([^"']+)["']/g)].map(([, name = '']) => name.replaceAll(':', '/')),
  )
  const catalog = await pluginsOf(directory)
  const projects: GradleProject[] = []
  for (const at of ['', ...included]) {
    const below = directory.at(at)
    const file = below.first(SCRIPTS)
    const script = uncommented(file === null ? '' : ((await below.text(file)) ?? ''))
    const named = [...script.matchAll(/alias\(\s*libs\.plugins\.([\w.]+)\s*\)(.*)$/gm)].map(
      ([, name = '', rest = '']) => `id("${catalog.get(name) ?? name}")${rest}`,
    )
    projects.push({ directory: at, file, script: [script, ...named].join('\n') })
  }
  return projects
}

const uncommented = (text: string): string => text.replace(/^[ \t]*\/\/.*$/gm, '')

/** Returns the plugins of the version catalogue by the names that scripts have for them. */
async function pluginsOf(directory: SourceDirectory): Promise<Map<string, string>> {
  const catalog = await directory.toml('gradle/libs.versions.toml').catch(() => null)
  return new Map(
    Object.entries(fieldsOf(catalog?.plugins)).flatMap(([name, value]) => {
      const id = typeof value === 'string' ? value.split(':')[0] : fieldsOf(value).id
      return typeof id === 'string' ? [[name.replace(/[-_]/g, '.'), id] as const] : []
    }),
  )
}

/** The Java that a build asks for. */
export interface GradleJava {
  readonly version: string
  /** Whether no other version will do. */
  readonly isExact: boolean
}

/** Returns the Java that a project's script asks for; null if it does not. */
export function javaOf({ script }: GradleProject): GradleJava | null {
  const exact = /JavaLanguageVersion\.of\(\s*["']?(\d+)|\bjvmToolchain\(\s*(\d+)/.exec(script)
  if (exact !== null) return { version: exact[1] ?? exact[2] ?? '', isExact: true }
  const least =
    /\b(?:source|target)Compatibility\s*=?\s*\(?\s*["']?(?:JavaVersion\.)?(?:toVersion\(["']?)?(?:VERSION_)?([\d._]+)/.exec(
      script,
    )?.[1]
  return least === undefined ? null : { version: least.replaceAll('_', '.'), isExact: false }
}
