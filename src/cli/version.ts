import { VERSION } from '../runtime/version.ts'

/** Commit that the executable was built from, defined by the build. Undefined if run from source. */
declare const BERTH_COMMIT: string | undefined

/** The version of this berth. */
export interface VersionInfo {
  version: string
  bun: string
  /** Operating system and processor, such as `linux-x64`. */
  system: string
  commit: string | null
}

/** Returns the version of berth, of its runtime, and the commit. */
export const versionInfo = (): VersionInfo => ({
  version: VERSION,
  bun: Bun.version,
  system: `${process.platform}-${process.arch}`,
  commit: typeof BERTH_COMMIT === 'string' ? BERTH_COMMIT : null,
})
