import manifest from '../../package.json' with { type: 'json' }

/** The commit an executable was built from; the build defines it, a run from source has none. */
declare const BERTH_COMMIT: string | undefined

/** What this berth is. */
export interface VersionInfo {
  version: string
  bun: string
  /** Operating system and processor, as in `linux-x64`. */
  platform: string
  commit: string | null
}

/** The version of berth, of the runtime inside it, and what it was built from. */
export const versionInfo = (): VersionInfo => ({
  version: manifest.version,
  bun: Bun.version,
  platform: `${process.platform}-${process.arch}`,
  commit: typeof BERTH_COMMIT === 'string' ? BERTH_COMMIT : null,
})
