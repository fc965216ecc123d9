import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { lookup } from 'mrmime'
import { takesGzip } from '../compressed.ts'
import { type Bundle, type BundledAsset, bundleDashboard, DASHBOARD_SOURCE } from './bundle.ts'
import type { ReportBundle } from './report-page.ts'

/** The executable has the bundle embedded (scripts/build.ts); from source it is made on first use. */
const isExecutable = import.meta.dir.startsWith('/$bunfs/')

/** The name of the file that says which of the embedded files a page loads first. */
export const MANIFEST = 'manifest.json'

/** The files of the dashboard, by name. Reads or makes them on first use. */
export class DashboardAssets {
  #loaded: Promise<Bundle> | null = null
  /** When the source was changed last, in milliseconds since 1970, at the time of the bundle; 0 in the executable. */
  #changedAt = 0

  /** Returns the names of the files that a page loads first. From source, sees to it that they are up to date. */
  async entry(): Promise<Pick<Bundle, 'script' | 'style'>> {
    if (!isExecutable) {
      const changedAt = await lastChange(DASHBOARD_SOURCE)
      if (changedAt !== this.#changedAt) this.#loaded = null
      this.#changedAt = changedAt
    }
    return this.#bundle()
  }

  /** Responds with a file, compressed where the client takes gzip; null if there is none of this name. */
  async respond(request: Request, name: string): Promise<Response | null> {
    const asset = (await this.#bundle()).assets.find((one) => one.name === name)
    if (!asset) return null
    const isCompressed = takesGzip(request)
    return new Response(isCompressed ? asset.gzip : gunzipSync(asset.gzip), {
      headers: {
        'content-type': `${lookup(name) ?? 'application/octet-stream'}; charset=utf-8`,
        // Its name has a hash of its content.
        'cache-control': 'public, max-age=31536000, immutable',
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        vary: 'accept-encoding',
        ...(isCompressed && { 'content-encoding': 'gzip' }),
      },
    })
  }

  /** Returns the script and the stylesheet of the page of a report, as texts. */
  async report(): Promise<ReportBundle> {
    const { report, style, assets } = await this.#bundle()
    const textOf = (name: string): string => {
      const asset = assets.find((one) => one.name === name)
      return asset ? gunzipSync(asset.gzip).toString() : ''
    }
    return { script: textOf(report), style: textOf(style) }
  }

  #bundle(): Promise<Bundle> {
    this.#loaded ??= isExecutable ? embeddedBundle() : bundleDashboard()
    return this.#loaded
  }
}

/** Reads the bundle that lies in the executable. */
async function embeddedBundle(): Promise<Bundle> {
  const directory = join(import.meta.dir, 'dashboard')
  const { script, style, report } = JSON.parse(await readFile(join(directory, MANIFEST), 'utf8')) as Bundle
  const names = (await readdir(directory)).filter((name) => name !== MANIFEST)
  const assets = names.map(
    async (name): Promise<BundledAsset> => ({ name, gzip: await readFile(join(directory, name)) }),
  )
  return { script, style, report, assets: await Promise.all(assets) }
}

/** Returns when a file of a directory was changed last, in milliseconds since 1970. */
async function lastChange(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const times = entries.map(async (entry) => (await stat(join(entry.parentPath, entry.name))).mtimeMs)
  return Math.max(...(await Promise.all(times)))
}
