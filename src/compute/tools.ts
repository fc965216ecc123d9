/** The tools that servers have: those of this machine with its toolchains, and berth's own with their settings. */
export { isShown, type ShownTools, selectMachineTools, type ToolPlaces } from './local/machine-tools.ts'
export {
  commandOf,
  findToolchains,
  isToolName,
  type PrintedVersions,
  type Toolchain,
  versionArguments,
  versionIn,
} from './local/toolchains.ts'
export { toolsOnHost } from './local/tools-directory.ts'
export { byVersion } from './local/versions.ts'
export {
  GRADLE_SETTINGS,
  GRADLE_SETTINGS_FILE,
  MAVEN_SETTINGS_DIRECTORY,
  NPM_SETTINGS_FILE,
  RUBY_SETTINGS_FILE,
} from './package-settings.ts'
export { PROGRAM_NAMES, PROGRAMS_DIRECTORY, UNFINISHED } from './programs/programs.ts'
