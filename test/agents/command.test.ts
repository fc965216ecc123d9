import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { AgentError } from '../../src/agents/agent.ts'
import { CommandAgent } from '../../src/agents/command/agent.ts'
import type { AgentEvent } from '../../src/agents/events.ts'
import { Emulators } from '../../src/compute/emulators/emulators.ts'
import { AGENT_DEFAULTS, type AgentConfig } from '../../src/config/agents.ts'
import { run, until } from '../compute/bench.ts'
import { AgentServer, type WorkOptions } from '../support/agents.ts'
import { quietLogger } from '../support/logger.ts'

const emulators = new Emulators(quietLogger)
let server: AgentServer
beforeAll(async () => {
  server = await AgentServer.open()
})
afterAll(() => server[Symbol.asyncDispose]())

const agentWith = (agentCommand: string, rest: Partial<AgentConfig> = {}): CommandAgent =>
  new CommandAgent({ emulators, config: { ...AGENT_DEFAULTS, agent: 'command', agentCommand, ...rest } })

const limits = (timeMs: number): Pick<AgentConfig, 'agentLimits'> => ({
  agentLimits: { ...AGENT_DEFAULTS.agentLimits, timeMs },
})

/** Works to the end. */
async function worked(
  command: string,
  goal = 'the goal',
  rest: Partial<AgentConfig> = {},
  options: WorkOptions = {},
) {
  const { outcome, events } = await server.work(agentWith(command, rest), goal, options)
  return { outcome, events, shown: shownIn(events) }
}

/** What a transcript shows of the terminal. */
const shownIn = (events: readonly AgentEvent[]): string =>
  events.flatMap((event) => (event.type === 'terminal' ? [event.text] : [])).join('\n')

const noticesIn = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'notice' ? [event.text] : []))

describe('the goal', () => {
  const NASTY = '-n "$(touch hacked)"; `touch hacked` \\ $HOME \'quoted\'\n\t*  é你😀 & exit 9 #'

  test('is one argument after the others, which no shell reads', async () => {
    const { outcome, shown } = await worked(`printf '[%s]' a "b c"`, NASTY)
    const [first, second = ''] = NASTY.split('\n')
    expect(outcome.status).toBe('completed')
    expect(shown).toBe(`[a][b c][${first}\n${second.replace('\t', '        ')}]`)
    expect(await server.text('hacked')).toBe(null)
  })

  test.each([
    `printf '[%s]' "$1" --flag`,
    `printf '[%s]' "\${@}" --flag`,
    `f() { printf '[%s]' "$@"; }; f "$1" --flag`,
  ])('stands where the command line says so: %p', async (command) => {
    expect((await worked(command, 'a  b')).shown).toBe('[a  b][--flag]')
  })

  test('comes with what berth knows beside it', async () => {
    const { shown } = await worked('echo', 'Build it.', {}, { context: 'The app lies in app/.' })
    expect(shown).toBe('Build it.\n\nThe app lies in app/.')
  })

  test('is in no environment and no argument but the agent’s own', async () => {
    const { shown } = await worked(
      `f() { env | grep -c secretgoa[l]; tr '\\0' ' ' < /proc/$PPID/cmdline | grep -c secretgoa[l]; tr '\\0' ' ' < /proc/$$/cmdline | grep -c secretgoa[l]; }; f`,
      'secretgoal',
    )
    expect(shown).toBe('0\n0\n0')
  })

  test('of 120 KB is an argument; a longer one is refused with the remedy', async () => {
    expect((await worked('printf %s "$1" | wc -c', 'x'.repeat(120_000))).shown.trim()).toBe('120000')
    const refused = server.work(agentWith('echo'), 'x'.repeat(140_000))
    expect(refused).rejects.toBeInstanceOf(AgentError)
    expect(refused).rejects.toThrow('--agent-input stdin')
    expect(server.work(agentWith('echo'), 'a\0b')).rejects.toThrow('NUL')
  })

  test('of a megabyte comes on standard input, whole, lines of any length too', async () => {
    const stdin = { agentInput: 'stdin' } as const
    const goal = `${'x'.repeat(999_999)}\n${NASTY}`
    const counted = await worked('test -t 0 || test -t 1 && wc -c', goal, stdin)
    expect(counted.shown.trim()).toBe(String(Buffer.byteLength(goal) + 1))
    const { shown } = await worked('read -r line; echo "got $line"', 'one line', stdin)
    expect(shown).toBe('got one line')
  })
})

describe('the end', () => {
  test('with exit code 0 completes, and its result is the end of what was printed', async () => {
    const { outcome, shown } = await worked('seq 1 100; echo "all done" #')
    expect(outcome.status).toBe('completed')
    expect(outcome.result).toEndWith('99\n100\nall done')
    expect(outcome.result).not.toStartWith('1\n')
    expect(shown.split('\n').length).toBe(101)
    expect((await worked('true')).outcome.result).toBe('The agent ended and printed nothing.')
  })

  test.each([
    ['echo oops; exit 3 #', 'The agent failed: It ended with exit code 3. Its last lines:\noops'],
    ['kill -KILL $$ #', 'The agent failed: It was ended by SIGKILL'],
    ['no-such-agent --yes', 'Servers see this machine'],
    ['/etc/passwd', 'A command cannot be executed (exit code 126).'],
    ['if then', 'exit code 2'],
  ])('of %p fails with the reason', async (command, reason) => {
    const { outcome } = await worked(command)
    expect(outcome.status).toBe('failed')
    expect(outcome.result).toContain(reason)
  })

  test('comes when the time is up, also to one that ignores SIGTERM and has children elsewhere', async () => {
    const deaf = "trap '' TERM HUP INT; setsid -f sleep 300; echo begun; while :; do sleep 0.05; done #"
    const { outcome } = await worked(deaf, 'x', limits(1500))
    expect(outcome.status).toBe('failed')
    expect(outcome.result).toBe(
      'The agent had 1500 ms and was ended then; --agent-limits can give it more. Its last lines:\nbegun',
    )
    expect(await server.bench.commands()).toEqual([])
  })

  test('comes when it is called off, with all that it started', async () => {
    const work = server.begin(agentWith('setsid -f sleep 300; echo begun; sleep 300 #'), 'x')
    await until('its beginning', () => shownIn(work.events).includes('begun'))
    work.abort(new Error('called off'))
    expect(work.done).rejects.toThrow('called off')
    await work.done.catch(() => {})
    expect(await server.bench.commands()).toEqual([])
    const late = server.begin(agentWith('touch late #'), 'x')
    late.abort(new Error('called off'))
    await late.done.catch(() => {})
  })

  test('leaves what it started in the background, without the terminal, to the server', async () => {
    // Before it has its own session it ends with the terminal, as does all that is in front there.
    const left = `setsid -f sh -c 'echo $$ > left; exec sleep 300'; until [ -s left ]; do sleep 0.01; done`
    const { outcome } = await worked(`${left}; echo started #`)
    expect(outcome).toEqual({ status: 'completed', result: 'started' })
    expect((await server.bench.commands()).length).toBe(1)
    // By its number: others on this machine may sleep as long.
    await run(server.sandbox, 'kill $(cat left); rm left')
    await until('it to be gone', async () => (await server.bench.commands()).length === 0)
  })
})

test('a transcript that cannot be written ends the agent and fails the work, not berth', async () => {
  const agent = agentWith('echo begun; sleep 300 #')
  const assignment = {
    id: 'task_01k0',
    goal: 'x',
    sandbox: server.sandbox,
    environment: () => ({}),
    ask: null,
    signal: new AbortController().signal,
    report() {
      throw new Error('the disk is full')
    },
  }
  const work = agent.work(assignment as unknown as Parameters<CommandAgent['work']>[0])
  expect(work).rejects.toThrow('the disk is full')
  await work.catch(() => {})
  expect(await server.bench.commands()).toEqual([])
})

describe('its surroundings', () => {
  test('are a terminal, the workspace, the server’s variables and the task’s id', async () => {
    const command = `test -t 0 && test -t 1 && stty size; echo "$TERM $BERTH_TASK_ID"; [ "$PWD" = "$HOME" ] && echo home; printf %s "$KEY" | rev #`
    const { shown } = await worked(command, 'x', {}, { variables: { KEY: 'drowssap' } })
    expect(shown).toBe('40 120\nxterm-256color task_01k0\nhome\npassword')
  })

  test('hide the server’s secrets in what is shown, however they are printed', async () => {
    const key = 'sk-0123456789abcdefghijklmnopqrstuvwxyz'.repeat(5)
    const command = `printf '%s\\n' "$KEY"; for c in $(printf %s "$KEY" | fold -w 7); do printf %s "$c"; sleep 0.02; done; echo; printf '\\033[31m%s\\033[0m\\n' "$KEY"; exit 1 #`
    const { shown, outcome } = await worked(command, 'x', {}, { variables: { KEY: key } })
    // On a busy machine the second is also shown before it is whole.
    expect(shown).toMatch(/^(\*\*\*\n){2,}\*\*\*$/)
    expect(outcome.result).not.toContain('0123')
  })
})

describe('a question', () => {
  const asking = { agentQuestion: /^\? (.*)$/ }
  const answering = (...answers: string[]) => {
    const asked: string[] = []
    const ask = async (question: string) => answers[asked.push(question) - 1] ?? ''
    return { asked, ask }
  }

  test('is asked, and its answer typed, twice, with and without an end of the line', async () => {
    const { asked, ask } = answering('blue', 'Ann')
    const command = `echo '? Which colour'; read -r colour; printf '? Your name: '; read -r name; echo "$name likes $colour" #`
    const { outcome, events } = await worked(command, 'x', asking, { ask })
    expect(asked).toEqual(['Which colour', 'Your name:'])
    expect(outcome).toMatchObject({ status: 'completed' })
    expect(outcome.result).toEndWith('Ann likes blue')
    expect(noticesIn(events)).toEqual([])
  })

  test('is in the transcript before it is asked', async () => {
    const asked: string[] = []
    const work = server.begin(agentWith(`echo '? Which'; read -r a #`, asking), 'x', {
      ask: async () => {
        asked.push(shownIn(work.events))
        return 'this'
      },
    })
    await work.done
    expect(asked).toEqual(['? Which'])
  })

  test('of a program that edits lines itself, in raw mode, is answered too', async () => {
    const { asked, ask } = answering('Ann', 'yes')
    const program = `
      import { createInterface } from 'node:readline/promises'
      const lines = createInterface({ input: process.stdin, output: process.stdout, terminal: true })
      const name = await lines.question('\x1b[32m?\x1b[0m Name: ')
      const sure = await lines.question('\x1b[32m?\x1b[0m Sure, ' + name + '? ')
      lines.close()
      console.log(process.stdout.isTTY, process.stdout.columns, name, sure)`
    await server.workspace.write('ask.ts', new TextEncoder().encode(program))
    const { outcome } = await worked('bun ask.ts', 'x', asking, { ask })
    expect(asked).toEqual(['Name:', 'Sure, Ann?'])
    expect(outcome.result).toEndWith('true 120 Ann yes')
  })

  test('that is drawn and drawn again, as menus do, is asked once', async () => {
    const { asked, ask } = answering('y')
    const draw = `printf '\\r\\033[K? Go on %s'`
    const command = `stty -echo -icanon; for n in 1 2 3; do ${draw} '(y/n)'; sleep 0.3; done; k=$(head -c 1); ${draw} "(y/n) $k"; echo; sleep 2.5; exit 0 #`
    await worked(command, 'x', asking, { ask })
    expect(asked).toEqual(['Go on (y/n)'])
  })

  test('is the whole line where the expression has no group; a line that does not match is not a question', async () => {
    const { asked, ask } = answering('no')
    const command = `echo 'Is this one?'; sleep 0.4; printf 'Overwrite? [y/N] '; read -r a; echo "answer $a" #`
    const { outcome } = await worked(command, 'x', { agentQuestion: /\[y\/N\]/g }, { ask })
    expect(asked).toEqual(['Overwrite? [y/N]'])
    expect(outcome.result).toEndWith('answer no')
  })

  test('is not a line of thousands of characters, which an expression could search without end', async () => {
    const { outcome, shown } = await worked(`head -c 16000 /dev/zero | tr '\\0' a; echo; echo done`, '', {
      agentQuestion: /(a*)*b/u,
    })
    expect(outcome.status).toBe('completed')
    expect(shown).toEndWith('aaa\ndone')
  })

  test('gets an answer without control characters, as one line, cut to what a terminal takes', async () => {
    const { ask } = answering('a\x03b\x1b[A\nc\td\x04', `é${'x'.repeat(9000)}`)
    const command = `printf '? one '; read -r a; printf '%s' "$a" | od -An -c; printf '? two '; read -r b; printf %s "$b" | wc -c #`
    const { shown, events } = await worked(command, 'x', asking, { ask })
    expect(shown).toMatch(/a +b +\[ +A +c +d\n/)
    expect(shown.trim()).toEndWith('4000')
    expect(noticesIn(events)).toEqual(['The answer is cut: a terminal takes no longer line.'])
  })

  test('fails the work where nobody can be asked', async () => {
    const { outcome } = await worked('echo "? Which"; read -r a #', 'x', asking, { ask: null })
    expect(outcome.status).toBe('failed')
    expect(outcome.result).toStartWith('The agent asked "Which", and there is nobody to ask here.')
    expect(await server.bench.commands()).toEqual([])
  })

  test('stops the clock, and holds nothing up where the agent ends or the work is called off', async () => {
    const command = `echo '? Which'; read -r a; echo "$a" #`
    const slow = server.begin(agentWith(command, { ...asking, ...limits(2000) }), 'x')
    await slow.asked.promise
    await Bun.sleep(2200)
    slow.answer('late')
    expect((await slow.done).result).toEndWith('late')
    const { outcome } = await worked(`echo '? Which'; sleep 0.5; exit 4 #`, 'x', asking, {
      ask: () => new Promise(() => {}),
    })
    expect(outcome.result).toContain('exit code 4')
  })

  test('on standard input that holds the goal is answered on the terminal', async () => {
    const { ask } = answering('yes')
    const command = `read -r goal; printf '? Sure '; read -r a </dev/tty; echo "$goal: $a"`
    const { outcome } = await worked(command, 'the goal', { ...asking, agentInput: 'stdin' }, { ask })
    expect(outcome.result).toEndWith('the goal: yes')
  })
})

describe('what is printed', () => {
  test('is kept at the beginning and at the end, however much it is', async () => {
    const { outcome, events, shown } = await worked('seq 1 60000; echo the end #')
    const lines = shown.split('\n')
    expect(lines.slice(0, 3)).toEqual(['1', '2', '3'])
    expect(outcome.result).toEndWith('60000\nthe end')
    expect(lines.slice(-2)).toEqual(['60000', 'the end'])
    expect(lines.length).toBeLessThan(6000)
    const [notice = ''] = noticesIn(events)
    const omitted = Number(/^(\d+) lines are left out here\.$/.exec(notice)?.[1])
    // On a busy machine a few lines are also shown before they are whole.
    expect(omitted + lines.length).toBeWithin(60_001, 60_010)
    expect(events.length).toBeLessThan(200)
  })

  test('without end fills neither memory nor transcript, and ends with the time', async () => {
    const before = process.memoryUsage.rss()
    const { outcome, events } = await worked(
      'yes "$(head -c 100 /dev/zero | tr "\\0" x)" #',
      'x',
      limits(3000),
    )
    expect(outcome.result).toStartWith('The agent had 3 s and was ended then')
    expect(process.memoryUsage.rss() - before).toBeLessThan(150 * 2 ** 20)
    expect(JSON.stringify(events).length).toBeLessThan(4 * 2 ** 20)
  }, 120_000)

  test('that is laborious to draw can be called off at any moment', async () => {
    const flood = `rm -f flood; yes "$(printf '\\033[40T%.0s' $(seq 500))" | tee flood`
    const work = server.begin(agentWith(flood), '')
    // So much takes seconds to draw, for which nothing waits that is called off.
    await until('the flood', async () => ((await server.workspace.stat('flood'))?.size ?? 0) > 100_000)
    // Timers and other calls get their turns meanwhile.
    for (let turn = 0; turn < 10; turn += 1) await Bun.sleep(1)
    const begun = process.cpuUsage()
    work.abort(new Error('called off'))
    await expect(work.done).rejects.toThrow('called off')
    const { user } = process.cpuUsage(begun)
    expect(user).toBeLessThan(500_000)
    expect(await server.bench.commands()).toEqual([])
  })

  test('in one line without end counts as a line', async () => {
    const { events } = await worked('head -c 5000000 /dev/zero | tr "\\0" x #')
    expect(JSON.stringify(events).length).toBeLessThan(100_000)
  })

  test('by a progress display is its end, not each state of it', async () => {
    const bar = `for n in $(seq 1 300); do printf '\\r[%s%%] installing' $n; sleep 0.005; done; printf '\\r\\033[Kinstalled\\n'`
    const drawn = `printf 'a\\nb\\n'; for n in $(seq 1 300); do printf '\\033[2A\\033[Kstep %s\\n\\033[Kof 300\\n' $n; sleep 0.005; done`
    // A state at which a busy machine leaves it standing for a while is a line, too.
    const states = (await worked(`${bar} #`)).shown.split('\n')
    expect(states.at(-1)).toBe('installed')
    expect(states.length).toBeLessThan(10)
    const lines = (await worked(`${drawn} #`)).shown.split('\n')
    expect(lines.at(-1)).toBe('step 300')
    expect(lines.filter((line) => line === 'of 300').length).toBe(1)
    expect(lines.length).toBeLessThan(10)
  })

  test('holds nothing that acts on a terminal, or on what reads the transcript', async () => {
    const injections = String.raw`printf 'a\033]0;title\007b\033[6n\033[c\033]52;c;aGk=\007c\033P$q"p\033\\d\0e\233\302\233\n\342\200\250x\377\n'`
    const { events, shown } = await worked(
      `${injections}; sleep 0.5; read -r -t 1 typed <&1 2>/dev/null; echo "[$typed]" #`,
    )
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
    expect(JSON.stringify(events)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028]|\\u00[01]/)
    expect(shown).toContain('abcd')
    // Nothing is typed in answer to what the program asks of the terminal.
    expect(shown).toEndWith('[]')
  })
})
