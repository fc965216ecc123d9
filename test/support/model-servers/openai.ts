import { argumentsOf, eventStream, pieces, type Reply, usageOf } from './reply.ts'

/** Answers as OpenAI's chat completions do: in one piece, or as chunks. */
export function openaiAnswer(reply: Reply, body: { stream?: boolean; stream_options?: object }): Response {
  if (!body.stream) return Response.json(completion(reply))
  const chunks = [
    chunk({ role: 'assistant', content: '' }),
    ...pieces(reply.thinks ?? '').map((reasoning_content) => chunk({ reasoning_content })),
    ...pieces(reply.text ?? '').map((content) => chunk({ content })),
    ...(reply.calls ?? []).flatMap((call, index) => [
      chunk({
        tool_calls: [
          { index, id: `call_${index}`, type: 'function', function: { name: call.tool, arguments: '' } },
        ],
      }),
      ...pieces(argumentsOf(call)).map((piece) =>
        chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
      ),
    ]),
    chunk({}, finishReason(reply)),
    ...(usageOf(reply) && body.stream_options ? [{ ...chunk({}), choices: [], usage: usage(reply) }] : []),
  ]
  return eventStream([...chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`), 'data: [DONE]\n\n'])
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'test-model',
  choices: [{ index: 0, delta, finish_reason }],
})

const completion = (reply: Reply) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'test-model',
  choices: [
    {
      index: 0,
      finish_reason: finishReason(reply),
      message: {
        role: 'assistant',
        content: reply.text ?? null,
        ...(reply.thinks ? { reasoning_content: reply.thinks } : {}),
        ...(reply.calls
          ? {
              tool_calls: reply.calls.map((call, index) => ({
                id: `call_${index}`,
                type: 'function',
                function: { name: call.tool, arguments: argumentsOf(call) },
              })),
            }
          : {}),
      },
    },
  ],
  ...(usageOf(reply) ? { usage: usage(reply) } : {}),
})

function finishReason({ stop, calls }: Reply): string {
  if (stop === 'length') return 'length'
  if (stop === 'refusal') return 'content_filter'
  return calls ? 'tool_calls' : 'stop'
}

function usage(reply: Reply) {
  const { input, output } = usageOf(reply) ?? { input: 0, output: 0 }
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
}
