import page from './page/index.html'
import type { Poll } from './poll.ts'

interface AppOptions {
  hostname: string
  /** 0 takes any port that is free. */
  port: number
  poll: Poll
  /** Whether the page reloads itself when its files change. Otherwise it is bundled once, and small. */
  development: boolean
}

/** Starts the app: the page, which Bun bundles, and the API that it uses. */
export const createApp = ({ hostname, port, poll, development }: AppOptions) =>
  Bun.serve({
    hostname,
    port,
    development: development && { hmr: true, console: true },
    maxRequestBodySize: 64 * 1024,
    routes: {
      '/': page,
      '/health': Response.json({ status: 'ok' }),
      '/api/poll': (request) => Response.json(poll.view(voterOf(request))),
      '/api/poll/vote': {
        async POST(request) {
          const voter = voterOf(request)
          if (voter === null)
            return failure(400, 'Send the header "X-Voter": 8 to 64 letters, digits or dashes.')
          const body = await request.json().catch(() => null)
          const option: unknown = body?.option
          if (typeof option !== 'number' || !poll.vote(voter, option)) {
            return failure(400, 'Send {"option": id} with the id of one of the options.')
          }
          return Response.json(poll.view(voter))
        },
      },
      '/api/*': (request) => failure(404, `There is no ${request.method} ${new URL(request.url).pathname}.`),
    },
    fetch: () => new Response('There is nothing here.\n', { status: 404 }),
    error(error) {
      console.error(error)
      return failure(500, 'Something went wrong here.')
    },
  })

/** Who asks: a name that the browser made up for itself. Whoever wants to vote twice can; real polls need accounts. */
function voterOf(request: Request): string | null {
  const voter = request.headers.get('x-voter') ?? ''
  return /^[\w-]{8,64}$/.test(voter) ? voter : null
}

const failure = (status: number, message: string) => Response.json({ error: message }, { status })
