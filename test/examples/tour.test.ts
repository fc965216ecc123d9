import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { serve, temporaryFolder } from '../cli/command.ts'
import { cleanEnvironment, command } from '../support/serve.ts'
import { missingIn, TOUR } from './tour.ts'

test('every line of the tour in the README works as typed', async () => {
  // An interactive zsh takes a comment for arguments.
  expect(TOUR).not.toMatch(/(^|\s)#\s/)
  using directory = temporaryFolder()
  const bin = join(directory.path, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'berth'), `#!/bin/sh\nexec ${shellQuote(command)} "$@"\n`)
  chmodSync(join(bin, 'berth'), 0o755)
  // The reader looks at what was built.
  const looking = TOUR.replace(/^berth builds run [^']*'[^']*'$/m, 'curl -s "$($&)"')
  expect(looking).toContain('curl -s "$(berth builds')
  await using berth = await serve(['--allow-local-webhooks'], { cwd: directory.path })
  // Without a screen `berth open` prints its link.
  const { DISPLAY: _, WAYLAND_DISPLAY: __, BROWSER: ___, ...env } = cleanEnvironment()
  const tour = Bun.spawn(['sh', '-euxc', looking], {
    cwd: directory.path,
    env: { ...env, PATH: `${bin}:${env.PATH}` },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [output, trace, exitCode] = await Promise.all([tour.stdout.text(), tour.stderr.text(), tour.exited])
  expect(`exit code ${exitCode}\n${trace}`).toStartWith('exit code 0\n')
  expect(missingIn(output, 'berth')).toEqual([])
  expect(output).toContain('<h1>Notes</h1>')
  // The tour ends with a reset.
  expect((await berth.run(['servers', '--json'])).stdout).toBe('{"servers":[]}\n')
}, 120_000)
