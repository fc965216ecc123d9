import { expect, test } from 'bun:test'
import { ComputeError } from '../../src/compute/sandbox.ts'
import { createLogger, type LogLevel } from '../../src/runtime/logger.ts'

/** Returns the line that is logged of an error. */
function logged(level: LogLevel, error: unknown): string {
  const lines: string[] = []
  createLogger(
    level,
    (line) => lines.push(line),
    () => 0,
  ).error('a sandbox did not start', { serverId: 'srv_a', error })
  return lines.join('')
}

const refused = new ComputeError('The sandbox did not start.', { cause: new Error('bwrap: no such file') })

test('an error that berth foresaw is one sentence with its cause, without a stack', () => {
  expect(logged('info', refused)).toBe(
    '1970-01-01T00:00:00.000Z ERROR a sandbox did not start serverId=srv_a error="The sandbox did not start. Cause: bwrap: no such file"\n',
  )
  expect(
    logged('info', Object.assign(new Error('EACCES: denied'), { code: 'EACCES', syscall: 'open' })),
  ).toEndWith('error="EACCES: denied"\n')
})

test.each([
  ['any error that nothing foresaw', 'info', new TypeError('x is not a function')],
  ['any error that nothing foresaw', 'error', new Error('unexpected')],
  ['one that berth foresaw at level debug', 'debug', refused],
] as const)('%s is logged with its stack (%s)', (_, level, error) => {
  expect(logged(level, error)).toContain('logger.test.ts')
})
