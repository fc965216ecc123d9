import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { HelperError, type HelperOptions, runHelper } from '../../src/runtime/run-helper.ts'
import { until } from '../support/processes.ts'

const sh = (script: string, options?: HelperOptions) => runHelper(['/bin/sh', '-c', script], options)

/** What a promise was rejected with. */
async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it succeeded')
}

/** Whether a process lives. */
function lives(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
  } catch {
    return false
  }
}

test('a helper that ends gives its exit code and what it printed', async () => {
  expect(await sh('echo out; echo err >&2; exit 3')).toEqual({
    exitCode: 3,
    stdout: 'out\n',
    stderr: 'err\n',
  })
  expect(await sh('kill -TERM $$')).toMatchObject({ exitCode: null })
})

test('it has the environment and the directory that it is given, and reads an end at once', async () => {
  const { stdout } = await sh('pwd; env; cat', { cwd: '/', env: { GIVEN: 'ünd' } })
  expect(stdout).toStartWith('/\n')
  expect(stdout).toContain('GIVEN=ünd\n')
  expect(stdout).not.toContain('HOME=')
})

test('a program that is not there is named, with the remedy', async () => {
  const error = await failureOf(runHelper(['berth-has-no-such-program']))
  expect(error).toBeInstanceOf(HelperError)
  expect(error).toMatchObject({ reason: 'not-started', pid: null })
  expect((error as Error).message).toStartWith('berth-has-no-such-program cannot be started: ')
  expect((error as Error).message).toEndWith('Install it, or add its directory to PATH.')
})

describe('with all that it has started, it is ended', () => {
  /** Runs what prints the number of a grandchild and waits; gives the failure when that has gone. */
  async function ended(options: (pid: Promise<number>) => HelperOptions): Promise<unknown> {
    let resolve: (pid: number) => void = () => {}
    const pid = new Promise<number>((done) => {
      resolve = done
    })
    const given = options(pid)
    let text = ''
    const onStdout = (chunk: Uint8Array): void => {
      text += new TextDecoder().decode(chunk)
      if (text.endsWith('\n')) resolve(Number(text))
      given.onStdout?.(chunk)
    }
    const error = await failureOf(sh('(sleep 1000 & echo $!); sleep 1000', { ...given, onStdout }))
    const grandchild = await pid
    await until(() => !lives(grandchild), 'the grandchild ends')
    return error
  }

  test('after its time', async () => {
    const error = await ended(() => ({ timeoutMs: 200 }))
    expect(error).toMatchObject({ reason: 'timeout' })
    expect((error as Error).message).toBe('/bin/sh took more than 0.2 s, and was ended. Try again.')
  })

  test('by a signal, whose reason is thrown', async () => {
    const given = new AbortController()
    const reason = new Error('called off')
    expect(
      await ended((pid) => {
        void pid.then(() => given.abort(reason))
        return { signal: given.signal }
      }),
    ).toBe(reason)
    expect(await failureOf(sh('true', { signal: given.signal }))).toBe(reason)
  })

  test('by a receiver that fails', async () => {
    const failure = new Error('not this')
    const onStdout = (): void => {
      throw failure
    }
    expect(await ended(() => ({ onStdout }))).toBe(failure)
  })

  test('when it prints too much', async () => {
    const error = await failureOf(sh('sleep 1000 & yes', { outputLimit: 100_000 }))
    expect(error).toMatchObject({ reason: 'output-limit' })
    expect(await failureOf(sh('yes >&2', { outputLimit: 10 }))).toMatchObject({ reason: 'output-limit' })
  })

  test('also where it has ended itself, and another of its processes holds its output open', async () => {
    const error = await failureOf(sh('sleep 1000 & exit 0', { timeoutMs: 200 }))
    expect(error).toMatchObject({ reason: 'timeout' })
  })
})

test('one that leaves another running is not waited for, where its output goes nowhere', async () => {
  const begun = performance.now()
  expect(await sh('sleep 5 & exit 0', { output: 'ignore' })).toMatchObject({ exitCode: 0 })
  expect(performance.now() - begun).toBeLessThan(4_000)
})
