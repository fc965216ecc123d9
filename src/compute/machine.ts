/** What this machine has for servers: its tools and toolchains. */
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
export { byVersion } from './local/versions.ts'
