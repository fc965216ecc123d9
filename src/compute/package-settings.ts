import { PACKAGE_VARIABLES } from './sandbox.ts'

/** Paths of the settings in a sandbox's tools directory. */
// Not etc/npmrc: Yarn 1 reads that beside the program it runs on, which is berth's own where there is no Node.
export const NPM_SETTINGS_FILE = 'etc/npm.conf'
export const MAVEN_SETTINGS_DIRECTORY = 'etc/maven'
export const RUBY_SETTINGS_FILE = 'lib/gem-relay.rb'

/**
 * Settings for npm that name a registry with its credential, and install programs for all projects where a server may write.
 * Npm takes a credential only from a file: the variable for it would need characters that a shell does not pass on. They are
 * npm's global settings, so a project's and a user's own take precedence.
 */
const NPM_SETTINGS = `registry=\${${PACKAGE_VARIABLES.url}}
//\${${PACKAGE_VARIABLES.host}}/:_authToken=\${${PACKAGE_VARIABLES.token}}
prefix=\${HOME}/.local
audit=false
fund=false
update-notifier=false
`

/** Maven's global settings, over which a user's own take precedence. */
const MAVEN_SETTINGS = `<settings>
  <localRepository>\${env.${PACKAGE_VARIABLES.caches}}/maven</localRepository>
  <mirrors>
    <mirror>
      <id>berth</id>
      <mirrorOf>\${env.${PACKAGE_VARIABLES.mavenMirrorOf}}</mirrorOf>
      <url>\${env.${PACKAGE_VARIABLES.maven}}</url>
    </mirror>
  </mirrors>
</settings>
`

/** How Maven prints, as its own directory of settings has it. */
const MAVEN_LOGGING = `org.slf4j.simpleLogger.defaultLogLevel=info
org.slf4j.simpleLogger.showDateTime=false
org.slf4j.simpleLogger.showThreadName=false
org.slf4j.simpleLogger.showLogName=false
org.slf4j.simpleLogger.logFile=System.out
org.slf4j.simpleLogger.cacheOutputStream=true
org.slf4j.simpleLogger.levelInBrackets=true
org.slf4j.simpleLogger.log.Sisu=info
org.slf4j.simpleLogger.warnLevelString=WARNING
org.slf4j.simpleLogger.log.org.apache.maven.cli.transfer.Slf4jMavenTransferListener=warn
`

/** Path of Gradle's settings in its own directory of the server. */
export const GRADLE_SETTINGS_FILE = 'init.d/berth.gradle'

/**
 * What Gradle runs before a build. It gives other addresses to the public repositories that a build names, and names the
 * portal of plug-ins where Gradle would use it unnamed.
 */
export const GRADLE_SETTINGS = `def relay = System.getenv('${PACKAGE_VARIABLES.url}') + '-/' + System.getenv('${PACKAGE_VARIABLES.token}')
def addresses = [
  (~'https://repo1?[.]maven([.]apache)?[.]org/maven2/?') : relay + '/maven/',
  (~'https://plugins[.]gradle[.]org/m2/?') : relay + '/gradle-plugins/',
]
def redirect = { repositories ->
  repositories.all { repository ->
    if (!(repository instanceof MavenArtifactRepository)) return
    def address = addresses.find { it.key.matcher(repository.url.toString()).matches() }?.value
    if (address == null) return
    repository.url = address
    if (repository.hasProperty('allowInsecureProtocol')) repository.allowInsecureProtocol = true
  }
}
def prepare = { settings ->
  def named = ['settings.gradle', 'settings.gradle.kts'].any { name ->
    def file = new File(settings.rootDir, name)
    file.file && file.text.contains('pluginManagement')
  }
  if (!named) settings.pluginManagement.repositories.gradlePluginPortal()
  redirect(settings.pluginManagement.repositories)
  if (settings.hasProperty('dependencyResolutionManagement')) redirect(settings.dependencyResolutionManagement.repositories)
}
if (System.getenv('${PACKAGE_VARIABLES.url}')) {
  // Gradle 6 and later resolves the plug-ins of its settings before these are evaluated.
  if (gradle.metaClass.respondsTo(gradle, 'beforeSettings')) gradle.beforeSettings(prepare)
  else gradle.settingsEvaluated(prepare)
  allprojects { project ->
    redirect(project.buildscript.repositories)
    redirect(project.repositories)
  }
}
`

/**
 * What every Ruby runs first: Bundler's mirror of rubygems.org, by a variable that no shell passes on, and the sources of
 * `gem`. The settings of a project and of a user take precedence, and no other source of a Gemfile is replaced.
 */
const RUBY_SETTINGS = `if ENV["${PACKAGE_VARIABLES.url}"]
  relay = "#{ENV["${PACKAGE_VARIABLES.url}"]}-/#{ENV["${PACKAGE_VARIABLES.token}"]}/rubygems/"
  mirror = "BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/"
  home = ENV["BUNDLE_USER_HOME"] || File.join(ENV["HOME"] || "/", ".bundle")
  files = [ENV["BUNDLE_USER_CONFIG"] || File.join(home, "config"), ".bundle/config"]
  named = ENV["BUNDLE_MIRROR__ALL"] || files.any? { |file| File.file?(file) && File.read(file).include?("BUNDLE_MIRROR__") }
  ENV[mirror] ||= relay unless named
  Gem.singleton_class.prepend(Module.new { define_method(:default_sources) { [relay] } }) if defined?(Gem)
end
`

/** The settings of all package managers, by path in the tools directory. */
export const PACKAGE_SETTINGS: Readonly<Record<string, string>> = {
  [NPM_SETTINGS_FILE]: NPM_SETTINGS,
  [RUBY_SETTINGS_FILE]: RUBY_SETTINGS,
  [`${MAVEN_SETTINGS_DIRECTORY}/settings.xml`]: MAVEN_SETTINGS,
  [`${MAVEN_SETTINGS_DIRECTORY}/logging/simplelogger.properties`]: MAVEN_LOGGING,
}
