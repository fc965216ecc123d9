import { argumentsOf, eventStream, pieces, type Reply, usageOf } from './reply.ts'

/** Answers as Anthropic's messages do: in one piece, or as events. */
export function anthropicAnswer(reply: Reply, body: { stream?: boolean }): Response {
  if (!body.stream)
    return Response.json({ ...message(reply), content: blocksOf(reply).map(({ whole }) => whole) })
  const { input, output } = usageOf(reply) ?? { input: 0, output: 0 }
  const events = [
    {
      type: 'message_start',
      message: {
        ...message(reply),
        content: [],
        stop_reason: null,
        usage: { input_tokens: input, output_tokens: 1 },
      },
    },
    { type: 'ping' },
    ...blocksOf(reply).flatMap(({ begin, deltas }, index) => [
      { type: 'content_block_start', index, content_block: begin },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    {
      type: 'message_delta',
      delta: { stop_reason: stopReason(reply), stop_sequence: null },
      usage: { output_tokens: output },
    },
    { type: 'message_stop' },
  ]
  return eventStream(events.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`))
}

const message = (reply: Reply) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'test-model',
  stop_reason: stopReason(reply),
  stop_sequence: null,
  usage: { input_tokens: usageOf(reply)?.input ?? 0, output_tokens: usageOf(reply)?.output ?? 0 },
})

/** The blocks of an answer: whole, and as a stream makes them. */
function blocksOf(reply: Reply): { whole: object; begin: object; deltas: object[] }[] {
  const thought = reply.thinks && {
    whole: { type: 'thinking', thinking: reply.thinks, signature: 'signed' },
    begin: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...pieces(reply.thinks).map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: 'signed' },
    ],
  }
  const text = reply.text && {
    whole: { type: 'text', text: reply.text },
    begin: { type: 'text', text: '' },
    deltas: pieces(reply.text).map((piece) => ({ type: 'text_delta', text: piece })),
  }
  const calls = (reply.calls ?? []).map((call, index) => {
    const use = { type: 'tool_use', id: `toolu_${index}`, name: call.tool }
    return {
      // Where the arguments are no object, only a stream can say so.
      whole: { ...use, input: typeof call.input === 'string' ? {} : call.input },
      begin: { ...use, input: {} },
      deltas: pieces(argumentsOf(call)).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    }
  })
  return [thought, text, ...calls].filter((block) => block !== undefined && block !== '')
}

function stopReason({ stop, calls }: Reply): string {
  if (stop === 'length') return 'max_tokens'
  if (stop === 'refusal') return 'refusal'
  return calls ? 'tool_use' : 'end_turn'
}
