/** The status that logs show for a request without a response, as nginx does. It is never sent. */
const NO_RESPONSE = 444

/**
 * A handler returns this to close its request's connection without a byte of a response. Bun has no call for that, but
 * resets a connection if the response's body has failed before the head was sent. A failure without a reason is not
 * printed. The object itself must reach Bun: read, cloned or wrapped it becomes half a response.
 *
 * Not for HEAD, whose body Bun never looks at.
 */
export class CutConnection extends Response {
  constructor() {
    super(new ReadableStream({ start: (controller) => controller.error(undefined) }), { status: NO_RESPONSE })
  }
}
