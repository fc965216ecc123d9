import type { Command } from 'commander'
import type { ClockState } from '../../testing/api/clock.ts'
import type { ConnectionOptions } from '../instance.ts'
import { facts } from '../output.ts'
import { connectControl, printJson, type Session, withControl, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
}

const MORE = `
Everything in berth that is dated, waits or expires goes by this one clock: metering, months, retries of webhooks,
the idle timeout, waits of the scripted agent. What falls due on the way runs before the command returns.

Examples:
  berth clock advance 2h                    two hours pass
  berth clock set 2030-01-31T23:59:00Z      a minute before the month ends
  berth clock freeze && berth clock advance 30d
`

/** Adds `clock` and what can be done with it. */
export function registerClock(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const clock = program
    .command('clock')
    .helpCommand(false)
    .summary('move, stop and reset the clock')
    .description('Moves, stops and resets the clock of an instance. Plain "berth clock" shows it.')
    .addHelpText('after', MORE)
  const add = (usage: string, description: string) =>
    withControl(withJson(clock.command(usage).description(description)))
  const tell = async (options: Options, move?: object) => {
    const client = await connectControl(session, options)
    const state = await (move
      ? client.request<ClockState>('POST', '/_berth/clock', { body: move })
      : client.request<ClockState>('GET', '/_berth/clock'))
    if (options.json) return printJson(session, state)
    await stdout.write(facts(stdout, details(state)))
  }

  add('show', 'show what time it is there').action((options: Options) => tell(options))
  add('advance <DURATION>', 'let time pass, such as 90s, 15m, 2h or 30d').action(
    (advance: string, options: Options) => tell(options, { advance }),
  )
  add('set <TIME>', 'go to an ISO 8601 time').action((set: string, options: Options) =>
    tell(options, { set }),
  )
  add('freeze', 'let it stand until it is moved').action((options: Options) =>
    tell(options, { freeze: true }),
  )
  add('unfreeze', 'let it go on from where it stands').action((options: Options) =>
    tell(options, { freeze: false }),
  )
  add('reset', "back to the machine's time, or to where it stood at the start").action((options: Options) =>
    tell(options, { reset: true }),
  )
}

const details = ({ now, frozen, offset_ms, timers }: ClockState): [string, string][] => [
  ['Now', now],
  ['Runs', frozen ? 'no, it stands until it is moved' : 'yes'],
  ['Ahead', offset_ms === 0 ? "by nothing: the machine's time" : `by ${spanOf(offset_ms)}`],
  ['Waiting', String(timers)],
]

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

/** The two largest parts of a span: `2 d 3 h`; an earlier time has a minus. */
function spanOf(ms: number): string {
  const parts: string[] = []
  let left = Math.abs(ms)
  for (const [size, unit] of UNITS) {
    const whole = Math.floor(left / size)
    if (whole > 0) parts.push(`${whole} ${unit}`)
    left -= whole * size
  }
  return (ms < 0 ? '-' : '') + (parts.slice(0, 2).join(' ') || `${Math.abs(ms)} ms`)
}
