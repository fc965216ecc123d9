/** The two addresses of Maven's central repository. */
const CENTRAL = /^https:\/\/repo1?\.maven(?:\.apache)?\.org\/maven2\//

/** Path of the wrapper's settings, and of the jar that its script fetches unless it is there, in a project. */
export const WRAPPER_SETTINGS = '.mvn/wrapper/maven-wrapper.properties'
export const WRAPPER_JAR = '.mvn/wrapper/maven-wrapper.jar'

/** What a project's Maven wrapper downloads. */
export interface MavenWrapper {
  /** Address of Maven; null if the settings name none. */
  readonly maven: string | null
  /** Whether it takes Maven from the repository that `MVNW_REPOURL` names, in the version that the settings name. */
  readonly isMovable: boolean
  /** Address of the wrapper's jar; null if the settings name none. */
  readonly jar: string | null
  /** Whether the script without that setting would take the same jar, from the repository that `MVNW_REPOURL` names. */
  readonly isUsualJar: boolean
}

/** Reads a wrapper. @param script the text of `mvnw` */
export function readMavenWrapper(script: string, settings: string): MavenWrapper {
  const setting = (name: string): string | null =>
    new RegExp(`^\\s*${name}\\s*=\\s*(\\S+)`, 'm').exec(settings)?.[1] ?? null
  const version = /Maven Wrapper startup batch script, version ([\d.]+)/.exec(script)?.[1] ?? ''
  const [maven, jar] = [setting('distributionUrl'), setting('wrapperUrl')]
  // 3.1 drops the path of the repository, and Takari's wrapper the version of Maven.
  const isMovable = maven !== null && CENTRAL.test(maven) && Bun.semver.satisfies(version, '>=3.2.0')
  const isUsualJar = jar !== null && isMovable && script.includes(jar.replace(CENTRAL, '$MVNW_REPOURL/'))
  return { maven, isMovable, jar, isUsualJar }
}
