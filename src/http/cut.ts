/** The status under which logs have a request that got no answer, which is never sent (nginx has it so). */
const NO_RESPONSE = 444

/** Answers that are none: their connections are cut. */
const cuts = new WeakSet<Response>()

/**
 * What a handler returns to have the connection of its request closed without a byte of an answer. Bun has no call for
 * it; it resets a connection whose answer's body has failed before the head was sent. A failure without a reason is
 * not printed. It must reach Bun as it is: read, cloned or wrapped it becomes half an answer.
 *
 * Not for HEAD, whose body Bun never looks at.
 */
export function cutConnection(): Response {
  const body = new ReadableStream({ start: (controller) => controller.error(undefined) })
  const cut = new Response(body, { status: NO_RESPONSE })
  cuts.add(cut)
  return cut
}

/** Whether an answer stands for a connection that is cut. */
export const isCut = (response: Response): boolean => cuts.has(response)
