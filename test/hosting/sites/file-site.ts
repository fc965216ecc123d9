import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import { type ServeFilesOptions, serveFiles } from '../../../src/hosting/static/serve.ts'
import { openBelow } from '../../compute/workspace-fixture.ts'
import { until } from '../../support/processes.ts'
import { get, Raw, type TestSite, testSite } from './support.ts'

/** What lies beside the workspace of a file site. */
export const SECRET = 'the secret of the host'

/** A site of files, with a folder beside its workspace that must stay out of reach. */
export interface FileSite extends AsyncDisposable {
  readonly site: TestSite
  /** The site's folder on this machine. */
  readonly root: string
  readonly outside: string
  put(path: string, content: string | Uint8Array): void
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** The status and body for a target that `fetch` would make another of. */
  raw(target: string): Promise<string>
}

/** Serves the files of a new directory on a port. */
export async function fileSite(options: Partial<ServeFilesOptions> = {}): Promise<FileSite> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'berth-files-')))
  const outside = join(folder, 'outside')
  const root = join(folder, 'workspace/projects/demo')
  mkdirSync(outside)
  mkdirSync(root, { recursive: true })
  writeFileSync(join(outside, 'secret.txt'), SECRET)
  const serve = serveFiles(new LocalWorkspace(join(folder, 'workspace')), 'projects/demo', {
    fallback: false,
    ...options,
  })
  const site = await testSite({ upstream: { kind: 'files', serve } })
  return {
    site,
    root,
    outside,
    put(path, content) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), content)
    },
    fetch: (path, init) => fetch(site.site.url.slice(0, -1) + path, { redirect: 'manual', ...init }),
    async raw(target) {
      using client = await Raw.to(site.port)
      client.send(get(target, 'Connection: close'))
      return await client.end()
    },
    async [Symbol.asyncDispose]() {
      await site[Symbol.asyncDispose]()
      await until(() => openBelow(folder).length === 0, 'all files are closed')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
