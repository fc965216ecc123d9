import { StartupError } from '../errors.ts'
import type { Answer } from './request-log.ts'

/** A listening HTTP server. */
export interface Listener {
  /** The port that it got. */
  readonly port: number
  /** The address that a request comes from, or null where its connection is gone. */
  addressOf(request: Request): string | null
  /** Takes no new connection; resolves when the open requests have ended. */
  drain(): Promise<void>
  /** Closes whatever is still open. */
  close(): Promise<void>
}

/**
 * Listens for HTTP/1.1.
 *
 * @throws StartupError where the address cannot be had
 */
export function listen(host: string, port: number, answer: Answer): Listener {
  try {
    const server = Bun.serve({
      hostname: host,
      port,
      // A command may be silent for long: its answer must not be cut off.
      idleTimeout: 0,
      // Berth refuses large bodies itself, in its own words and after the credential.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // Without this a second berth could share the port, and requests would fall to either.
      reusePort: false,
      development: false,
      fetch: answer,
    })
    return {
      port: server.port ?? port,
      addressOf: (request) => server.requestIP(request)?.address ?? null,
      drain: () => server.stop(),
      close: () => server.stop(true),
    }
  } catch (error) {
    const code = (error as { code?: string }).code
    if (code === 'EADDRINUSE') {
      throw new StartupError(
        `Port ${port} on ${host} is taken by another program. Choose another with --port, or --port 0 for any free one.`,
      )
    }
    const cause = error instanceof Error ? error.message : String(error)
    throw new StartupError(
      `Cannot listen on ${host}:${port}: ${cause}. Choose another address with --host and --port.`,
    )
  }
}
