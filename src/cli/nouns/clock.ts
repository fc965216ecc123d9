import type { PartsOf, ResponseOf } from '../../route-client/client.ts'
import { call, factSheet, type Noun } from '../command.ts'

type Clock = ResponseOf<'control.clock.read'>
type Move = NonNullable<PartsOf<'control.clock.move'>['body']>

/** Timers that are shown. @bound reader */
const MOST_SHOWN = 5

const clockFacts = ({ now, frozen, offset_ms, timers, next }: Clock): [string, string][] => [
  ['Now', now],
  ['Runs', frozen ? 'no, it is stopped until it is moved' : 'yes'],
  ['Ahead', offset_ms === 0 ? "by nothing: the machine's time" : `by ${spanText(offset_ms)}`],
  ['Waiting', String(timers)],
  ...next
    .slice(0, MOST_SHOWN)
    .map(({ at, name, id }): [string, string] => ['Next', `${at}  ${name}${id === null ? '' : ` ${id}`}`]),
]

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

/** Returns the two largest parts of a span: `2 d 3 h`; an earlier time has a minus. */
function spanText(ms: number): string {
  const parts: string[] = []
  let left = Math.abs(ms)
  for (const [size, unit] of UNITS) {
    const whole = Math.floor(left / size)
    if (whole > 0) parts.push(`${whole} ${unit}`)
    left -= whole * size
  }
  return (ms < 0 ? '-' : '') + (parts.slice(0, 2).join(' ') || `${Math.abs(ms)} ms`)
}

/** Declares a command that moves the clock. */
const move = <const Usage extends string>(usage: Usage, description: string, body: (given: string) => Move) =>
  call('control.clock.move', {
    usage,
    description,
    request: ([given]: readonly unknown[]) => ({ body: body(String(given)) }),
    show: factSheet(clockFacts),
  })

/** `berth clock` */
export const clockNoun: Noun = {
  name: 'clock',
  summary: 'move, stop and reset the clock',
  description: 'Moves, stops and resets the clock of an instance. Plain "berth clock" shows it.',
  help: `
Everything in berth that is dated, waits or expires goes by this one clock: metering, months, retries of webhooks,
the idle timeout, waits of the scripted agent. What falls due on the way runs before the command returns.

Examples:
  berth clock advance 2h                    two hours pass
  berth clock set 2030-01-31T23:59:00Z      a minute before the month ends
  berth clock freeze && berth clock advance 30d
`,
  commands: [
    call('control.clock.read', {
      usage: 'get',
      aliases: ['show'],
      description: 'show what time it is there',
      show: factSheet(clockFacts),
    }),
    move(
      'advance <DURATION>',
      'let time pass, such as 90s, 15m, 2h or 30d; a number alone is seconds',
      (advance) => ({ advance }),
    ),
    move('set <TIME>', 'go to an ISO 8601 time', (set) => ({ set })),
    move('freeze', 'stop it until it is moved', () => ({ freeze: true })),
    move('unfreeze', 'let it run on from its time', () => ({ freeze: false })),
    move('reset', "back to the machine's time, or to where it stood at the start", () => ({ reset: true })),
  ],
}
