import { startInstance } from './instance.ts'
import { median, ms, print, samples, time, times } from './measure.ts'

const ROUNDS = 20
const PER_ROUND = 30

/** What a tool call adds to the same request by HTTP; how long a list of all tools takes; what the first call costs. */
export async function benchMcp(): Promise<void> {
  await using berth = await startInstance()
  const { id } = await berth.call('POST', '/servers')
  const post = async (path: string, body: object, headers: Record<string, string> = {}): Promise<string> => {
    const answer = await fetch(`${berth.url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${berth.key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(body),
    })
    const text = await answer.text()
    if (!answer.ok || text.includes('"error"')) throw new Error(text)
    return text
  }
  const mcp = (method: string, params: { name?: string; arguments?: object } = {}): Promise<string> => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    return post(
      '/mcp',
      { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } },
      {
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(params.name ? { 'mcp-name': params.name } : {}),
      },
    )
  }
  const command = 'true'
  const byHttp = () => post(`/servers/${id}/exec`, { command }, { accept: 'application/json' })
  const byTool = () => mcp('tools/call', { name: 'exec_run', arguments: { serverId: id, command } })
  const byOldTool = () =>
    post('/mcp', {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'exec_run', arguments: { serverId: id, command } },
    })

  const first = await time(() => mcp('tools/list'))
  const taken = { http: [] as number[], tool: [] as number[], old: [] as number[] }
  // In turns, so that whatever else the machine does falls on all.
  for (let round = 0; round < ROUNDS; round++) {
    const warm = round === 0 ? 50 : 3
    taken.http.push(median(await samples(PER_ROUND, warm, byHttp)))
    taken.tool.push(median(await samples(PER_ROUND, warm, byTool)))
    taken.old.push(median(await samples(PER_ROUND, warm, byOldTool)))
  }
  const list = median(await samples(200, 20, () => mcp('tools/list')))
  const row = (what: string, values: readonly number[]) => {
    // Round by round, so that a slow moment of the machine falls out.
    const ratio = median(values.map((value, round) => value / (taken.http[round] ?? Number.NaN)))
    return {
      what,
      measured: ms(median(values)),
      baseline: `the same by HTTP ${ms(median(taken.http))}`,
      ratio: times(ratio),
      goal: '≤ 1.50 ×',
      met: ratio <= 1.5,
    }
  }
  print(`MCP (isolation ${berth.isolation}), medians of interleaved rounds`, [
    row('exec_run of true, protocol 2026-07-28', taken.tool),
    row('exec_run of true, protocol 2025-11-25', taken.old),
    { what: 'tools/list', measured: ms(list), goal: '≤ 5 ms', met: list <= 5 },
    {
      what: 'the first request, which loads it all',
      measured: ms(first),
      goal: '≤ 300 ms',
      met: first <= 300,
    },
  ])
}
