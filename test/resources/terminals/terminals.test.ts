import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { screenOf, TestViewer } from '../../support/viewer.ts'

const berth = await berthForTests()
const server = await berth.server({ task: 'web shop' })

/** Opens a terminal and returns it. */
async function open(request: object = {}) {
  const { status, body } = await berth.call('POST', `/servers/${server}/terminals`, request)
  expect([status, body.message]).toEqual([201, undefined])
  return body.terminal
}

const pathOf = ({ id }: { id: string }): string => `/servers/${server}/terminals/${id}`

const attach = (terminal: { id: string }, query = ''): Promise<TestViewer> =>
  TestViewer.attach(berth, `${pathOf(terminal)}/attach${query}`)

const remove = (terminal: { id: string }) => berth.call('DELETE', pathOf(terminal))

describe('a terminal', () => {
  test('is opened, listed, looked at and hung up', async () => {
    const terminal = await open({ command: 'FOO=1 sleep 300', columns: 100, rows: 30 })
    expect(terminal).toEqual({
      id: expect.stringMatching(/^term_[0-9a-z]{26}$/),
      name: 'sleep',
      command: 'FOO=1 sleep 300',
      cwd: '',
      columns: 100,
      rows: 30,
      viewers: 0,
      started_at: expect.any(String),
      last_used_at: expect.any(String),
      exit_code: null,
    })
    const later = await open({ command: 'sleep 301' })
    expect(later.name).toBe('sleep-2')
    const { body } = await berth.call('GET', `/servers/${server}/terminals`)
    expect(body.terminals.map(({ id }: { id: string }) => id)).toEqual([later.id, terminal.id])
    expect((await berth.call('GET', pathOf(terminal))).body).toEqual({ terminal })
    expect(await remove(terminal)).toMatchObject({ status: 200, body: { id: terminal.id, deleted: true } })
    expect((await remove(terminal)).status).toBe(404)
    await remove(later)
    expect((await berth.exec(server, 'pgrep -x sleep')).stdout).toBe('')
  })

  test('has the name that is asked for, which no other may have while it runs', async () => {
    const terminal = await open({ command: 'sleep 300', name: 'one' })
    const path = `/servers/${server}/terminals`
    expect(await berth.call('POST', path, { name: 'one' })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('a terminal "one" already') },
    })
    expect((await berth.call('POST', path, { name: 'no name' })).status).toBe(400)
    await remove(terminal)
    await remove(await open({ command: 'sleep 300', name: 'one' }))
  })

  test('runs a login shell without a command, whose prompt names the server and the folder', async () => {
    await berth.exec(server, 'mkdir -p "src/a b"')
    const terminal = await open({ cwd: 'src/a b' })
    const viewer = await attach(terminal)
    await viewer.shows('$ ')
    expect((await viewer.screen())[0]).toBe('web-shop:~/src/a b$ ')
    viewer.type('shopt -q login_shell && echo lo""gin; echo "$SHELL $TERM $COLORTERM"; tty; command -v bun\r')
    await viewer.shows('login')
    await viewer.shows('/bin/bun')
    expect(viewer.text).toContain('/bash xterm-256color truecolor\r\n/dev/pts/')
    viewer.type('exit 4\r')
    expect(await viewer.closed).toEqual({ code: 1000, reason: 'the program has ended' })
    expect(viewer.frames).toEqual(['{"exit":4}'])
    expect((await berth.exec(server, 'ls -A')).stdout).not.toContain('history')
  })

  test('takes the shell of its environment, and another if that is not there', async () => {
    const shown = async (shell: string): Promise<string> => {
      const terminal = await open({ env: { SHELL: shell } })
      const viewer = await attach(terminal)
      viewer.type('echo "shell=$SHELL"; exit\r')
      await viewer.closed
      return /shell=(\/\S*)/.exec(viewer.text)?.[1] ?? ''
    }
    expect(await shown('/bin/sh')).toBe('/bin/sh')
    expect(await shown('/bin/no-such-shell')).toEndWith('/bash')
  })

  test('has job control: Ctrl-C, Ctrl-Z, fg, and a size that programs learn of', async () => {
    const viewer = await attach(await open(), '?columns=90&rows=33')
    viewer.type('stty size; sleep 300\r')
    await viewer.shows('33 90')
    await until(async () => (await berth.exec(server, 'pgrep -x sleep')).exitCode === 0, 'the job')
    viewer.type('\x1a')
    await until(() => /Stopped[\s\S]*\$ /.test(viewer.text), 'the prompt after the stop')
    viewer.type('fg\r')
    // Between the S of a sleeping process and the + of one in front ps has other marks, such as N for a nice one.
    const inFront = async () => /^S\w*\+$/m.test((await berth.exec(server, 'ps -C sleep -o stat=')).stdout)
    await until(inFront, 'the job in front again')
    viewer.type('\x03')
    viewer.type('echo "ended $?"\r')
    await viewer.shows('ended 130')
    viewer.resize(50, 20)
    viewer.type('stty size </dev/tty\r')
    await viewer.shows('20 50')
    viewer.type('exit\r')
    await viewer.closed
  })

  test('is refused where the folder, the size or a variable is wrong, or the server is not there', async () => {
    const path = `/servers/${server}/terminals`
    for (const wrong of [
      { cwd: 'nowhere' },
      { cwd: '../..' },
      { rows: 0 },
      { columns: 10_001 },
      { env: { '1': '' } },
    ]) {
      expect([wrong, (await berth.call('POST', path, wrong)).status]).toEqual([wrong, 400])
    }
    expect((await berth.call('POST', '/servers/srv_none/terminals', {})).status).toBe(404)
    expect((await berth.call('GET', `${path}/term_none`)).status).toBe(404)
    const elsewhere = await berth.server()
    const terminal = await open({ command: 'sleep 300' })
    expect((await berth.call('GET', `/servers/${elsewhere}/terminals/${terminal.id}`)).status).toBe(404)
    await remove(terminal)
  })

  test('wakes a server that sleeps', async () => {
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    await remove(await open({ command: 'sleep 300' }))
    expect((await berth.call('GET', `/servers/${server}`)).body.server.status).toBe('running')
  })
})

describe('the first message', () => {
  test('is what was printed, for the first viewer, and the same screen for the next', async () => {
    const terminal = await open({ command: 'printf "one\\ntwo \\033[1mbold\\033[m"; sleep 300' })
    await until(async () => (await attach(terminal)).text.includes('bold'), 'the output')
    const viewer = await attach(terminal)
    expect((await viewer.screen()).slice(0, 3)).toEqual(['one', 'two bold', ''])
    expect(viewer.text).toContain('\x1b[1mbold')
    await remove(terminal)
  })

  test('has the scrollback, up to its bound', async () => {
    const terminal = await open({ command: 'seq 1 200000; sleep 300', columns: 20, rows: 10 })
    const first = await attach(terminal)
    await first.shows('\r\n200000\r\n')
    const viewer = await attach(terminal)
    const lines = viewer.text.split('\r\n')
    expect(lines.slice(-2)).toEqual(['200000', ''])
    expect(lines.length).toBe(10_010)
    expect(lines[0]).toBe('189992')
    await remove(terminal)
  })

  test('has the modes: alternate screen, cursor, margins, bracketed paste, mouse, title, colours', async () => {
    const modes =
      '\\033[?1049h\\033[?2004h\\033[?1002h\\033[?1006h\\033[?25l\\033[3;20r\\033]2;a title\\007\\033[4 q'
    const drawing = '\\033[5;10Hhere\\033[31;44m'
    const terminal = await open({ command: `printf 'before\\r\\n${modes}${drawing}'; sleep 300` })
    const first = await attach(terminal)
    await first.shows('here')
    const viewer = await attach(terminal)
    for (const mode of [
      '?1049h',
      '?2004h',
      '?1002h',
      '?1006h',
      '?25l',
      '3;20r',
      ']2;a title\x07',
      '4 q',
      '31;44m',
    ])
      expect(viewer.text).toContain(mode)
    expect(await viewer.screen()).toEqual(await first.screen())
    // What is printed later continues where the cursor is, in its colours.
    const rest = 'X\x1b[?1049lafter'
    expect(await screenOf(viewer.text + rest)).toEqual(await screenOf(first.text + rest))
    await remove(terminal)
  })

  test('is the last screen of a program that has ended, within the hour', async () => {
    const terminal = await open({ command: 'echo done; exit 3' })
    await until(
      async () => (await berth.call('GET', pathOf(terminal))).body.terminal.exit_code === 3,
      'its end',
    )
    const viewer = await attach(terminal)
    expect(viewer.text).toBe('done\r\n')
    expect(viewer.frames).toEqual(['{"exit":3}'])
    expect((await viewer.closed).code).toBe(1000)
  })
})

describe('viewers', () => {
  test('of one terminal see the same; the smallest decides the size, columns and rows each', async () => {
    const terminal = await open({ columns: 120, rows: 50 })
    const size = async () => {
      const { columns, rows, viewers } = (await berth.call('GET', pathOf(terminal))).body.terminal
      return [columns, rows, viewers]
    }
    const [one, two] = [await attach(terminal, '?columns=100&rows=20'), await attach(terminal)]
    expect(await size()).toEqual([100, 20, 2])
    two.resize(60, 40)
    await until(async () => String(await size()) === '60,20,2', 'the smallest')
    one.type('echo "to $((1+1))"\r')
    await Promise.all([one.shows('to 2'), two.shows('to 2')])
    two.terminate()
    await until(async () => String(await size()) === '100,20,1', 'the other one alone')
    one.close()
    await until(async () => String(await size()) === '100,20,0', 'nobody: the size stays')
    await remove(terminal)
  })

  test('of one terminal are at most fifty', async () => {
    const terminal = await open({ command: 'sleep 300' })
    const viewers = await Promise.all(Array.from({ length: 50 }, () => attach(terminal)))
    const handshake = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-version': '13' }
    const key = { 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' }
    const url = `${berth.info.base_url}${pathOf(terminal)}/attach`
    const authorization = `Bearer ${berth.info.api_key}`
    const refused = get(url, { headers: { authorization, ...handshake, ...key } })
    const [response] = (await once(refused, 'response')) as [IncomingMessage]
    expect(response.statusCode).toBe(403)
    expect(JSON.parse(await text(response)).error).toBe('plan_limit')
    for (const viewer of viewers) viewer.terminate()
    await until(async () => (await berth.call('GET', pathOf(terminal))).body.terminal.viewers === 0, 'nobody')
    ;(await attach(terminal)).close()
    await remove(terminal)
  })

  test('are closed at a text frame that is not a size, each with a reason', async () => {
    const terminal = await open({ command: 'sleep 300' })
    for (const frame of [
      'x',
      'null',
      '{"resize":[1]}',
      '{"resize":[0,5]}',
      '{"resize":["a",5]}',
      '{"resize":[1,10001]}',
    ]) {
      const viewer = await attach(terminal)
      viewer.send(frame)
      expect([frame, (await viewer.closed).code]).toEqual([frame, 4000])
    }
    await remove(terminal)
  })

  test('are notified when the terminal is deleted', async () => {
    const terminal = await open()
    const viewer = await attach(terminal)
    await remove(terminal)
    expect((await viewer.closed).code).toBe(4006)
  })

  test('see wide characters and emoji in their columns', async () => {
    const terminal = await open({ command: "printf '漢字|😀|e\\314\\201|\\n'; sleep 300" })
    const first = await attach(terminal)
    await first.shows('|\r\n')
    const viewer = await attach(terminal)
    expect((await viewer.screen())[0]?.normalize()).toBe('漢字|😀|é|')
    await remove(terminal)
  })
})

test('a request that is not a handshake is refused with how to send one', async () => {
  const terminal = await open({ command: 'sleep 300' })
  const response = await berth.fetch(`${pathOf(terminal)}/attach`)
  expect([response.status, response.headers.get('upgrade')]).toEqual([426, 'websocket'])
  expect(await response.json()).toMatchObject({ error: 'upgrade_required' })
  const incomplete = await berth.fetch(`${pathOf(terminal)}/attach`, { headers: { upgrade: 'websocket' } })
  expect([426, 400]).toContain(incomplete.status)
  await remove(terminal)
})
