import { shellQuote } from '../../../runtime/shell-quote.ts'
import { type Provider, startCommand } from '../candidate.ts'
import { anyVersion } from '../versions.ts'

/** Go: the program of the module's own directory, else the only or the likeliest one of `cmd`. */
export const go: Provider = {
  name: 'go',
  marks: /^go\.mod$/,
  async look(directory) {
    const module = await directory.text('go.mod')
    if (module === null) return []
    const files = directory.files.filter((path) => path.endsWith('.go') && !path.endsWith('_test.go'))
    const programs = new Map<string, string>()
    for (const path of files.filter((file) => /^(?:[^/]+|cmd\/[^/]+\/[^/]+)$/.test(file))) {
      if (/^package main\b/m.test((await directory.code(path)) ?? ''))
        programs.set(path.split('/').slice(0, -1).join('/'), path)
    }
    const name = /^module[ \t]+(\S+)\s*$/m.exec(module)?.[1]?.split('/').at(-1)
    const likely = ['', 'cmd/server', 'cmd/web', 'cmd/api', 'cmd/app', `cmd/${name}`]
    const [only = null] = programs.size === 1 ? programs.keys() : []
    const program = likely.find((one) => programs.has(one)) ?? only
    const file = program === null ? undefined : programs.get(program)
    return [
      {
        kind: 'Go',
        strength: program === null ? 'none' : 'proven',
        install: null,
        build:
          program === null
            ? null
            : `mkdir -p bin && go build -o bin/app ${shellQuote([program === '' ? '.' : `./${program}`])}`,
        start: program === null ? null : startCommand('./bin/app'),
        obstacle:
          'There is a go.mod, but no single "package main" in its directory or in cmd/ that would be the app.',
        tools: [anyVersion('go')],
        evidence: [
          await directory.evidence('go.mod', /^module\b/),
          ...(file === undefined ? [] : [await directory.evidence(file, /^package main\b/)]),
        ],
        runs: /(?:^|[\s/;&])(?:go|bin\/[\w-]+)\b/,
      },
    ]
  },
}
