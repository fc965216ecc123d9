/** The tools that berth gives to servers, and the settings of package managers there. */
export { toolsOnHost } from './local/tools-directory.ts'
export {
  GRADLE_SETTINGS,
  GRADLE_SETTINGS_FILE,
  MAVEN_SETTINGS_DIRECTORY,
  NPM_SETTINGS_FILE,
  PACKAGE_VARIABLES,
  RUBY_SETTINGS_FILE,
} from './package-settings.ts'
export { PROGRAM_NAMES, PROGRAMS_DIRECTORY } from './programs/programs.ts'
