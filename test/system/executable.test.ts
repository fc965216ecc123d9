import { expect, test } from 'bun:test'
import { join } from 'node:path'

/** Words that only the code of one system has. */
const WORDS = {
  linux: ['memfd_create', '/proc/uptime'],
  darwin: ['proc_pidinfo', '/usr/lib/libSystem.B.dylib'],
}

test.each(['linux', 'darwin'] as const)(
  'berth for %s builds, and leaves the code of the other out',
  async (system) => {
    const { success, outputs, logs } = await Bun.build({
      entrypoints: [join(import.meta.dir, '../../src/main.ts')],
      target: 'bun',
      splitting: true,
      minify: { syntax: true, whitespace: true },
      define: { 'process.platform': JSON.stringify(system) },
      throw: false,
    })
    expect([success, logs.map(String)]).toEqual([true, []])
    const text = (await Promise.all(outputs.map((output) => output.text()))).join('')
    const found = (name: 'linux' | 'darwin') => WORDS[name].filter((word) => text.includes(word))
    const other = system === 'linux' ? 'darwin' : 'linux'
    expect([found(system), found(other)]).toEqual([WORDS[system], []])
  },
)
