import { join, normalize } from 'node:path'

/** Serves a folder as any web server does: index.html for the root, 404.html for what there is not. */
export function serveFolder(folder: string, port: number): { stop(): Promise<void> } {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const file = Bun.file(
        join(folder, normalize(pathname.endsWith('/') ? `${pathname}index.html` : pathname)),
      )
      if (await file.exists()) return new Response(file)
      return new Response(Bun.file(join(folder, '404.html')), { status: 404 })
    },
  })
  return { stop: () => server.stop(true) }
}
