/**
 * Serves the files of a release as GitHub and as an index of Python packages do. As a program of its own it runs in the network
 * of a bare root: `bun file-servers.ts TLS-DIRECTORY INDEX-PORT FIFO`.
 */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { owner, release } from './facts.ts'

const missing = (): Response => new Response('Not found.', { status: 404 })

/** Responds to a download of the latest release, or of one by its version, as GitHub does. */
export function releaseDownload({ url }: Request): Response {
  const place = `/${owner}/berth/releases/`
  const { pathname } = new URL(url)
  const [, name] = /^(?:latest\/download|download\/v[^/]+)\/([^/]+)$/.exec(pathname.slice(place.length)) ?? []
  if (!pathname.startsWith(place) || name === undefined || !existsSync(join(release, name))) return missing()
  return new Response(Bun.file(join(release, name)))
}

/** Responds as an index that pip reads (packaging.python.org, simple repository API), below `/simple`. */
export function packageIndex({ url }: Request): Response {
  const { pathname } = new URL(url)
  const wheels = readdirSync(join(release, 'pypi'))
  const wheel = wheels.find((file) => pathname === `/files/${file}`)
  if (wheel !== undefined) return new Response(Bun.file(join(release, 'pypi', wheel)))
  if (pathname !== `/simple/${owner}-berth-cli/`) return missing()
  const links = wheels.map((file) => `<a href="/files/${file}">${file}</a>`)
  return new Response(`<!DOCTYPE html>${links.join('\n')}`, { headers: { 'content-type': 'text/html' } })
}

if (import.meta.main) {
  const [tls = '', port, listening = ''] = process.argv.slice(2)
  const identity = { cert: Bun.file(join(tls, 'cert')), key: Bun.file(join(tls, 'key')) }
  Bun.serve({ hostname: '127.0.0.1', port: 443, tls: identity, fetch: releaseDownload })
  Bun.serve({ hostname: '127.0.0.1', port: Number(port), fetch: packageIndex })
  writeFileSync(listening, 'both')
}
