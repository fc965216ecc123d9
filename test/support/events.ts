/** One server-sent event, its data parsed as JSON. */
export interface ServerEvent {
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  data: any
}

/** Reads an event stream (HTML standard, 9.2), comments left out. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const lines = text.slice(0, end).split('\n')
      text = text.slice(end + 2)
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
      const event = field('event')
      if (event) yield { event, data: JSON.parse(field('data') ?? 'null') }
    }
  }
}
