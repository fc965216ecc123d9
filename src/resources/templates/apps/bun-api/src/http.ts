/** A failure that the caller is told of: a status, a code for programs and a sentence for people. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Record<string, string> = {},
  ) {
    super(message)
  }
}

/** Answers one method of a path. What is no Response becomes JSON. */
type Handler = (request: Request, params: Record<string, string>) => unknown

/** A path's handlers by method. HEAD comes with GET; other methods are refused with those that there are. */
export function methods(handlers: Record<string, Handler>) {
  return async (request: Request & { params: Record<string, string> }): Promise<Response> => {
    try {
      const handler = handlers[request.method === 'HEAD' ? 'GET' : request.method]
      if (!handler) {
        const allow = Object.keys(handlers).join(', ')
        throw new HttpError(405, 'method_not_allowed', `Use ${allow} here.`, { allow })
      }
      const answer = await handler(request, request.params)
      return answer instanceof Response ? answer : Response.json(answer)
    } catch (error) {
      return errorResponse(error)
    }
  }
}

/** Reads a request's JSON body. @throws HttpError where it is none */
export async function readJson(request: Request): Promise<unknown> {
  if (!request.headers.get('content-type')?.startsWith('application/json')) {
    throw new HttpError(415, 'unsupported_media_type', 'Send JSON with "Content-Type: application/json".')
  }
  try {
    return await request.json()
  } catch {
    throw new HttpError(400, 'bad_request', 'The body is not valid JSON.')
  }
}

/** A failure as `{error, message}`. One that was not foreseen goes to the log and tells the caller nothing. */
export function errorResponse(error: unknown): Response {
  if (error instanceof HttpError) {
    const { code, message, status, headers } = error
    return Response.json({ error: code, message }, { status, headers })
  }
  console.error(error)
  return Response.json({ error: 'internal_error', message: 'Something went wrong here.' }, { status: 500 })
}
