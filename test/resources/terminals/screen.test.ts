import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { TestViewer } from '../../support/viewer.ts'
import { connect } from '../mcp/clients.ts'

setDefaultTimeout(30_000)

const berth = await berthForTests()
const server = await berth.server({ task: 'shop' })

/** A terminal as a program uses it. */
class Driven {
  private constructor(readonly path: string) {}

  static async open(request: object = {}): Promise<Driven> {
    const { body } = await berth.call('POST', `/servers/${server}/terminals`, request)
    return new Driven(`/servers/${server}/terminals/${body.terminal.id}`)
  }

  /** Reads the screen; fails where that is refused. */
  async screen(query: Record<string, string | number> = {}) {
    const given = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) given.set(name, String(value))
    const { status, body } = await berth.call('GET', `${this.path}/screen?${given}`)
    expect([status, body.message]).toEqual([200, undefined])
    return body.screen
  }

  async type(request: object) {
    const { status, body } = await berth.call('POST', `${this.path}/input`, request)
    expect([status, body.message]).toEqual([200, undefined])
    return body.screen
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await berth.call('DELETE', this.path)
  }
}

/** A shell that shows its prompt. */
async function shell(): Promise<Driven> {
  const driven = await Driven.open()
  expect((await driven.screen({ until: '\\$ $' })).outcome).toBe('matched')
  return driven
}

describe('the screen', () => {
  test('is what a person sees: rows, cursor, title, alternate screen, and how the program has ended', async () => {
    const draws = "printf '\\033]2;a title\\007one\\r\\n  two \\033[1mbold\\033[m  '"
    await using driven = await Driven.open({ command: `${draws}; read -r x; exit 4`, columns: 40, rows: 10 })
    expect(await driven.screen({ until: 'bold' })).toEqual({
      text: 'one\n  two bold  ',
      scrollback: '',
      cursor: { row: 1, column: 12, visible: true },
      title: 'a title',
      alternate_screen: false,
      columns: 40,
      rows: 10,
      exit_code: null,
      outcome: 'matched',
      match: 'bold',
    })
    const ended = await driven.type({ keys: ['enter'], until: 'never' })
    expect(ended).toMatchObject({ outcome: 'exited', exit_code: 4, title: 'a title', match: null })
    expect(await driven.screen()).toMatchObject({ text: 'one\n  two bold', outcome: 'none', exit_code: 4 })
    expect(await driven.screen({ until: '^one$' })).toMatchObject({ outcome: 'matched', match: 'one' })
    expect(await driven.screen({ until: 'never' })).toMatchObject({ outcome: 'exited' })
  })

  test('answers no question of a program that the terminal of a viewer has had', async () => {
    // Asks what terminal it is (DA1), and shows what is typed.
    await using driven = await Driven.open({ command: "read -r x; printf 'asked\\033[c\\n'; exec cat -v" })
    const viewer = await TestViewer.attach(berth, `${driven.path}/attach`)
    viewer.type('\r')
    await viewer.shows('asked')
    viewer.close()
    await until(
      async () => (await berth.call('GET', driven.path)).body.terminal.viewers === 0,
      'nobody views',
    )
    await driven.screen()
    expect((await driven.type({ text: 'typed\n', until: 'typed\\ntyped' })).text).toBe(
      '\nasked\ntyped\ntyped',
    )
  })

  test('has wide characters and emoji as text, and the cursor in their columns', async () => {
    const command = "printf '漢字|😀|e\\314\\201|👩‍👩‍👧|'; exec sleep 300"
    await using driven = await Driven.open({ command })
    const { text, cursor } = await driven.screen({ until: '👧' })
    expect(text.normalize()).toBe('漢字|😀|é|👩‍👩‍👧|')
    expect(cursor.row).toBe(0)
    expect(cursor.column).toBeGreaterThanOrEqual(12)
  })

  test('comes with the rows above it that are asked for', async () => {
    await using driven = await Driven.open({ command: 'seq 1 500; exec sleep 300', rows: 5 })
    await driven.screen({ until: '^500$' })
    expect(await driven.screen({ lines: 3 })).toMatchObject({
      text: '497\n498\n499\n500',
      scrollback: '494\n495\n496',
    })
    const all = await driven.screen({ lines: 10_000 })
    expect(all.scrollback.split('\n').length).toBe(496)
  })

  test('is the same for a viewer, and reading it changes neither the size nor the list of viewers', async () => {
    await using driven = await shell()
    const viewer = await TestViewer.attach(berth, `${driven.path}/attach?columns=60&rows=20`)
    await until(async () => (await driven.screen()).columns === 60, 'the size of the viewer')
    await driven.type({ text: 'echo "seen $((1+1))"', keys: ['enter'], until: '^seen 2$' })
    await viewer.shows('seen 2')
    const { text, cursor } = await driven.screen({ quiet_ms: 100 })
    expect((await viewer.screen(60, 20)).join('\n').trimEnd()).toBe(text.trimEnd())
    expect(cursor.row).toBe(2)
    expect((await berth.call('GET', driven.path)).body.terminal.viewers).toBe(1)
    viewer.close()
  })
})

describe('a wait', () => {
  test('ends when the text is there, even if it scrolls away in the same moment', async () => {
    const command = 'read -r x; seq 1 50000; echo "server is ready"; seq 1 50000; exec sleep 300'
    await using driven = await Driven.open({ command })
    const shown = await driven.type({ keys: ['enter'], until: 'server is re\\w+', timeout_ms: 20_000 })
    expect(shown).toMatchObject({ outcome: 'matched', match: 'server is ready' })
    // All lines that follow are drawn as well.
    expect((await driven.screen({ until: '^50000$', timeout_ms: 20_000 })).outcome).toBe('matched')
  })

  test('finds a text that is wrapped over several rows', async () => {
    await using driven = await Driven.open({ command: 'echo "0123456789abcdefghij"; sleep 300', columns: 8 })
    expect(await driven.screen({ until: '^0123456789abcdefghij$' })).toMatchObject({
      outcome: 'matched',
      text: '01234567\n89abcdef\nghij',
    })
  })

  test('after typing looks only at what is new: not at the prompt that is there, nor at earlier output', async () => {
    await using driven = await shell()
    await driven.type({ text: 'echo fin""ished', keys: ['enter'], until: '^finished$' })
    const command = 'until [ -e go ]; do sleep 0.02; done; echo fin""ished'
    const waits = driven.type({
      text: command,
      keys: ['enter'],
      until: '^finished$|\\$ $',
      timeout_ms: 20_000,
    })
    expect(await Promise.race([waits, driven.screen({ quiet_ms: 300 })])).toMatchObject({ outcome: 'quiet' })
    await berth.exec(server, 'touch go')
    expect(await waits).toMatchObject({ outcome: 'matched', match: 'finished' })
    // On the alternate screen, and on the return from it.
    await driven.type({ text: 'seq 300 | less', keys: ['enter'], until: '^20$' })
    expect(await driven.type({ text: 'G', until: '^300$' })).toMatchObject({ outcome: 'matched' })
    expect(await driven.type({ text: 'q', until: '\\$ $' })).toMatchObject({ outcome: 'matched' })
  })

  test('ends when nothing is printed for a while, or when the time is over, and says which', async () => {
    const prints = 'for n in 1 2 3 4 5; do echo $n; sleep 0.1; done; exec sleep 300'
    await using driven = await Driven.open({ command: prints })
    expect(await driven.screen({ quiet_ms: 400 })).toMatchObject({ outcome: 'quiet', text: '1\n2\n3\n4\n5' })
    const begun = performance.now()
    expect(await driven.screen({ until: 'never', timeout_ms: 300 })).toMatchObject({
      outcome: 'timeout',
      match: null,
      text: '1\n2\n3\n4\n5',
    })
    expect(performance.now() - begun).toBeGreaterThan(290)
    expect(await driven.screen({ until: 'never', quiet_ms: 1 })).toMatchObject({ outcome: 'quiet' })
  })

  test('takes no pattern that is wrong or costly, and no more than ten at a time', async () => {
    await using driven = await Driven.open({ command: 'sleep 300' })
    for (const pattern of ['(', '(?=x)', '(a{100}){100}', 'x'.repeat(201), '']) {
      const query = `until=${encodeURIComponent(pattern)}`
      const { status, body } = await berth.call('GET', `${driven.path}/screen?${query}`)
      expect([pattern, status, body.message]).toEqual([pattern, 400, expect.stringContaining('until')])
    }
    const held = Array.from({ length: 10 }, () => driven.screen({ until: 'never', timeout_ms: 1_000 }))
    const refused = async () =>
      (await berth.call('GET', `${driven.path}/screen?until=x&timeout_ms=1`)).body.error === 'plan_limit'
    await until(refused, 'the eleventh to be refused')
    for (const one of await Promise.all(held)) expect(one.outcome).toBe('timeout')
    expect(await driven.screen({ until: 'never', timeout_ms: 1 })).toMatchObject({ outcome: 'timeout' })
  })

  test('ends with the terminal, the server and the credential', async () => {
    const waits = async (driven: Driven, key = berth.info.api_key) => {
      const path = `${driven.path}/screen?until=never&timeout_ms=20000`
      const response = berth.fetch(path, { headers: { authorization: `Bearer ${key}` } })
      return (await response).status
    }
    const [deleted, ended, guarded] = [await shell(), await shell(), await shell()]
    const { key, id } = (await berth.call('POST', '/keys', { label: 'x', allowed_server_ids: [server] })).body
    const results = [waits(deleted), waits(ended), waits(guarded, key)]
    const isWaiting = async ({ path }: Driven) =>
      (await berth.call('GET', path)).body.terminal.exit_code === null
    for (const one of [deleted, ended, guarded]) await until(() => isWaiting(one), 'the wait')
    await ended.type({ text: 'sleep 0.3; exit', keys: ['enter'], quiet_ms: 0 })
    await deleted.screen({ quiet_ms: 100 })
    await deleted[Symbol.asyncDispose]()
    await berth.call('DELETE', `/keys/${id}`)
    expect(await Promise.all(results)).toEqual([404, 200, 401])
    await guarded[Symbol.asyncDispose]()
  })
})

describe('typing', () => {
  test('presses keys by name, in the modes of the program', async () => {
    const command = 'stty raw -echo; echo ready; cat -v'
    await using driven = await Driven.open({ command, columns: 200 })
    await driven.screen({ until: 'ready' })
    const keys = [
      'enter',
      'tab',
      'escape',
      'up',
      'ctrl-left',
      'f1',
      'F5',
      'delete',
      'shift-tab',
      'alt-x',
      'ctrl-c',
    ]
    const { text } = await driven.type({ text: 'ab\n', keys, until: '\\^C' })
    expect(text.replace(/ +/g, ' ')).toBe('ready\n ab^M^M ^[^[[A^[[1;5D^[OP^[[15~^[[3~^[[Z^[x^C')
  })

  test('sends cursor keys as the program has asked for them, and marks a paste only where it has', async () => {
    const asks = "printf '\\033[?1h\\033[?2004h'; stty raw -echo; echo ready; cat -v"
    await using driven = await Driven.open({ command: asks, columns: 200 })
    await driven.screen({ until: 'ready' })
    const { text } = await driven.type({ text: 'a\nb', paste: true, keys: ['up', 'home'], until: 'OH' })
    expect(text).toContain('^[[200~a^Mb^[[201~^[OA^[OH')
    await using plain = await Driven.open({ command: 'stty raw -echo; echo ready; cat -v' })
    await plain.screen({ until: 'ready' })
    expect((await plain.type({ text: 'a\nb', paste: true, until: 'b' })).text).toContain('a^Mb')
  })

  test('is refused where the key is unknown, or the program has ended', async () => {
    await using driven = await Driven.open({ command: 'exit 3' })
    const { status, body } = await berth.call('POST', `${driven.path}/input`, { keys: ['hyper-x'] })
    expect([status, body.message]).toEqual([400, expect.stringMatching(/no key "hyper-x"|has ended/)])
    await driven.screen({ until: 'never' })
    expect(await berth.call('POST', `${driven.path}/input`, { text: 'x' })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('has ended') },
    })
  })

  test('a megabyte arrives whole', async () => {
    const command = 'stty raw -echo; echo ready; head -c 1000000 | md5sum; exec sleep 300'
    await using driven = await Driven.open({ command })
    await driven.screen({ until: 'ready' })
    const text = 'a paste.'.repeat(125_000)
    const sum = new Bun.CryptoHasher('md5').update(text).digest('hex')
    expect(await driven.type({ text, until: sum, timeout_ms: 20_000 })).toMatchObject({ outcome: 'matched' })
  })

  test('a program that asks its terminal something has a response, without a viewer too', async () => {
    const asks = "stty raw -echo; printf '\\033[3;5H\\033[6n'; head -c 6 | od -c; exec sleep 300"
    await using driven = await Driven.open({ command: asks })
    expect((await driven.screen({ until: '033.*R' })).text).toContain('033   [   3   ;   5   R')
  })

  test('a program that asks without end, and does not read, has a bounded number of responses', async () => {
    const thousand = `yes "$(printf '\\033[6n')" | head -n 1000 | tr -d '\\n'`
    const asks = `sleep 1.5; stty raw -echo; for n in $(seq 40); do ${thousand}; sleep 0.05; done; sleep 1; timeout --foreground 6 cat | wc -c; sleep 300`
    await using driven = await Driven.open({ command: asks })
    const { text } = await driven.screen({ until: '[0-9]+\\s*$', timeout_ms: 20_000 })
    const bytes = Number(/(\d+)\s*$/.exec(text)?.[1])
    expect(bytes).toBeGreaterThan(10_000)
    // Of 240,000.
    expect(bytes).toBeLessThan(100_000)
  })
})

test('a model drives a program by MCP tools: starts it, types, waits, reads', async () => {
  await using mcp = await connect(berth, 'v2')
  const created = await mcp.call('terminals_create', { serverId: server, command: 'sh' })
  const { terminal } = created.structuredContent as { terminal: { id: string } }
  const at = { serverId: server, terminalId: terminal.id }
  const typed = await mcp.call('terminals_type', {
    ...at,
    text: 'read -p "name? " name && echo "hello $name"',
    keys: ['enter'],
    until: 'name\\? $',
  })
  expect(typed.structuredContent).toMatchObject({ screen: { outcome: 'matched' } })
  await mcp.call('terminals_type', { ...at, text: 'you', keys: ['enter'], until: '^hello you$' })
  const { structuredContent } = await mcp.call('terminals_screen', { ...at, until: '^hello you$', lines: 5 })
  expect(structuredContent).toMatchObject({ screen: { outcome: 'matched', match: 'hello you' } })
  const wrong = await mcp.call('terminals_type', { ...at, keys: ['no-such-key'] })
  expect([wrong.isError, JSON.stringify(wrong.content)]).toEqual([true, expect.stringContaining('pageup')])
  await mcp.call('terminals_delete', at)
})
