import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** The path below which the files of the dashboard are served. */
export const ASSETS_PATH = '/dashboard/assets/'

/** The source of the dashboard. No code of the server imports it: it runs in browsers. */
export const DASHBOARD_SOURCE = join(import.meta.dir, '../../dashboard')

/** A file of the dashboard. */
export interface BundledAsset {
  /** With a hash of its content: the content of a name never changes. */
  readonly name: string
  /** Compressed by gzip. */
  readonly gzip: Uint8Array<ArrayBuffer>
}

/** The files of the dashboard, and those of them that its page loads first. */
export interface Bundle {
  /** The name of the script that starts the page; it loads the others when they are needed. */
  readonly script: string
  readonly style: string
  /** The name of the script of the page of a report, which loads nothing else. */
  readonly report: string
  readonly assets: readonly BundledAsset[]
}

/**
 * Bundles the dashboard from its source: one script that starts it, one for each part that loads on first use, and
 * one stylesheet.
 *
 * @returns the bundle, with the paths of the source files in it, those of libraries included
 * @throws AggregateError with what the bundler said
 */
export async function bundleDashboard(): Promise<Bundle & { readonly sources: readonly string[] }> {
  const options = {
    target: 'browser',
    minify: true,
    naming: '[name]-[hash].[ext]',
    publicPath: ASSETS_PATH,
    metafile: true,
  } as const
  const [{ outputs, metafile }, report] = await Promise.all([
    Bun.build({
      ...options,
      entrypoints: [join(DASHBOARD_SOURCE, 'main.tsx'), join(DASHBOARD_SOURCE, 'styles/index.css')],
      splitting: true,
    }),
    Bun.build({ ...options, entrypoints: [join(DASHBOARD_SOURCE, 'report.tsx')] }),
  ])
  const [reportScript] = report.outputs
  if (reportScript === undefined) throw new Error('The page of reports has no script.')
  const assets = await Promise.all(
    [...outputs, reportScript].map(async (output) => ({
      name: basename(output.path),
      gzip: gzipSync(new Uint8Array(await output.arrayBuffer()), { level: 9 }),
    })),
  )
  const nameOf = (kind: string, extension: string): string => {
    const found = outputs.find((output) => output.kind === kind && output.path.endsWith(extension))
    if (!found) throw new Error(`The bundle of the dashboard has no ${extension} to start with.`)
    return basename(found.path)
  }
  return {
    script: nameOf('entry-point', '.js'),
    style: nameOf('asset', '.css'),
    report: basename(reportScript.path),
    assets,
    sources: [...new Set([metafile, report.metafile].flatMap((one) => Object.keys(one?.inputs ?? {})))],
  }
}
