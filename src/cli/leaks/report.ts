import { count } from '../format.ts'
import { paint, printable } from '../output.ts'
import { printJson, type Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { findLeaks, removeLeaks } from './find.ts'
import type { Leak } from './leak.ts'

/** What is asked of `doctor --leaks`. */
export interface LeakOptions {
  data?: string
  fix: boolean
  json?: boolean
}

const NOUNS: Record<Leak['kind'], string> = {
  process: 'process',
  folder: 'folder',
  group: 'control group',
  entry: 'entry',
}

/** Says what dead instances have left, and removes it where that is asked for; resolves to the exit code. */
export async function reportLeaks(session: Session, { data, fix, json }: LeakOptions): Promise<number> {
  const { stdout, env, cwd } = session.terminal
  const scope = { data, env, cwd }
  const leaks = findLeaks(scope)
  const left = fix && leaks.length > 0 ? await removeLeaks(scope) : leaks
  const removed = leaks.filter((leak) => !left.some(({ id }) => id === leak.id))
  if (json) await printJson(session, { ok: left.length === 0, leaks: left, removed })
  else if (leaks.length + left.length === 0) await stdout.write('Nothing is left behind.\n')
  else {
    await stdout.write(removed.map((leak) => line(stdout, 'removed', leak)).join(''))
    await stdout.write(left.map((leak) => line(stdout, 'left', leak)).join(''))
    if (left.length > 0) await stdout.write(advice(left.length, fix))
  }
  return left.length === 0 ? 0 : 1
}

function line(
  stdout: Terminal['stdout'],
  state: 'removed' | 'left',
  { kind, id, detail, remedy }: Leak,
): string {
  const sign = state === 'removed' ? paint(stdout, 'green', '✓ removed') : paint(stdout, 'red', '✗')
  const remark = state === 'removed' ? '' : `  ${paint(stdout, 'dim', printable(remedy))}\n`
  return `${sign} ${NOUNS[kind]} ${printable(id)}: ${printable(detail)}\n${remark}`
}

const advice = (number: number, tried: boolean): string =>
  tried
    ? `\n${count(number, 'thing')} could not be removed: follow the remedies above.\n`
    : `\n${count(number, 'thing')} left behind. "berth doctor --leaks --fix" removes all.\n`
