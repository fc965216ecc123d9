import { posix } from 'node:path'
import type { SourceDirectory } from '../source.ts'

/** A module of a Maven build. */
export interface MavenModule {
  /** Relative to the directory of the build; empty for it itself. */
  readonly directory: string
  /** Its pom.xml, without comments, profiles and what it only manages. */
  readonly pom: string
  /** The pom.xml of the modules above it, nearest first. */
  readonly above: readonly string[]
}

/** Most modules of a build that are looked at. */
const MAX_MODULES = 100

/** Returns the modules of a build, the first one its own. */
export async function readModules(directory: SourceDirectory): Promise<MavenModule[]> {
  const modules: MavenModule[] = []
  const add = async (at: string, above: readonly string[]): Promise<void> => {
    const text = await directory.text(posix.join(at, 'pom.xml'))
    if (text === null || modules.length >= MAX_MODULES || modules.some((one) => one.directory === at)) return
    const pom = text
      .replace(/<!--[\s\S]*?-->/g, '')
      .replace(/<profiles>[\s\S]*?<\/profiles>/g, '')
      .replace(/<dependencyManagement>[\s\S]*?<\/dependencyManagement>/g, '')
      .replace(/<pluginManagement>[\s\S]*?<\/pluginManagement>/g, '')
    modules.push({ directory: at, pom, above })
    for (const [, name = ''] of pom.matchAll(/<module>\s*([^<\s]+)\s*<\/module>/g)) {
      const to = posix.join(at, name.replace(/\/?pom\.xml$/, ''))
      if (!to.startsWith('..')) await add(to, [pom, ...above])
    }
  }
  await add('', [])
  return modules
}

/** Returns an element's text in a module's pom.xml or in one above it, with a property in its place; null if there is none. */
export function elementOf({ pom, above }: MavenModule, name: string): string | null {
  const find = (element: string): string | null => {
    for (const text of [pom, ...above]) {
      const value = new RegExp(`<${element.replaceAll('.', '\\.')}>\\s*([^<]+?)\\s*</`).exec(text)?.[1]
      if (value !== undefined) return value
    }
    return null
  }
  const value = find(name)
  const property = /^\$\{([\w.-]+)\}$/.exec(value ?? '')?.[1]
  return property === undefined ? value : find(property)
}

/** Reports whether a module, or one above it, names a plugin or a parent. */
export const uses = ({ pom, above }: MavenModule, pattern: RegExp): boolean =>
  [pom, ...above].some((text) => pattern.test(text))

/** Reports whether a module has dependencies that it needs to run. */
export const hasDependencies = ({ pom }: MavenModule): boolean =>
  [...pom.matchAll(/<dependency>([\s\S]*?)<\/dependency>/g)].some(
    ([, text = '']) => !/<scope>\s*(?:test|provided|import)\s*</.test(text),
  )

/** Returns the oldest Java that a module is compiled for, as its file says it; null if none does. */
export function javaOf(module: MavenModule): string | null {
  const names = [
    'maven.compiler.release',
    'java.version',
    'maven.compiler.target',
    'maven.compiler.source',
    'release',
    'target',
    'source',
  ]
  for (const name of names) {
    const version = elementOf(module, name)
    if (version !== null && /^(?:1\.)?\d+$/.test(version)) return version
  }
  return null
}
