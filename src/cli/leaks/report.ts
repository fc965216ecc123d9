import { count, paint, printable } from '../output.ts'
import type { Print } from '../runner.ts'
import type { Sink, Terminal } from '../terminal.ts'
import { findLeaks, removeLeaks } from './find.ts'
import type { Leak } from './leak.ts'

/** What is asked of `doctor --leaks`. */
export interface LeakOptions {
  data?: string | undefined
  fix: boolean
}

const NOUNS: Record<Leak['kind'], string> = {
  process: 'process',
  folder: 'folder',
  group: 'control group',
  entry: 'entry',
}

/** Says what dead instances have left, and removes it where that is asked for; resolves to the exit code. */
export async function reportLeaks(
  { env, cwd }: Terminal,
  print: Print,
  { data, fix }: LeakOptions,
): Promise<number> {
  const scope = { data, env, cwd }
  const leaks = findLeaks(scope)
  const left = fix && leaks.length > 0 ? await removeLeaks(scope) : leaks
  const removed = leaks.filter((leak) => !left.some(({ id }) => id === leak.id))
  await print({ ok: left.length === 0, leaks: left, removed }, (_, { sink }) => {
    if (leaks.length + left.length === 0) return 'Nothing is left behind.\n'
    return [
      ...removed.map((leak) => line(sink, 'removed', leak)),
      ...left.map((leak) => line(sink, 'left', leak)),
      left.length > 0 ? advice(left.length, fix) : '',
    ].join('')
  })
  return left.length === 0 ? 0 : 1
}

function line(sink: Sink, state: 'removed' | 'left', { kind, id, detail, remedy }: Leak): string {
  const sign = state === 'removed' ? paint(sink, 'green', '✓ removed') : paint(sink, 'red', '✗')
  const remark = state === 'removed' ? '' : `  ${paint(sink, 'dim', printable(remedy))}\n`
  return `${sign} ${NOUNS[kind]} ${printable(id)}: ${printable(detail)}\n${remark}`
}

const advice = (number: number, tried: boolean): string =>
  tried
    ? `\n${count(number, 'thing')} could not be removed: follow the remedies above.\n`
    : `\n${count(number, 'thing')} left behind. "berth doctor --leaks --fix" removes all.\n`
