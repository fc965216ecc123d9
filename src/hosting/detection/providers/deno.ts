import { fieldsOf } from '../../../runtime/is-object.ts'
import { type Provider, startCommand } from '../candidate.ts'
import { anyVersion } from '../versions.ts'

/** Deno, by its configuration: its task `start`, else its main file. */
export const deno: Provider = {
  name: 'deno',
  marks: /^deno\.jsonc?$/,
  async look(directory) {
    const file = directory.first(['deno.json', 'deno.jsonc'])
    if (file === null) return []
    const tasks = taskNames((await directory.text(file)) ?? '')
    const main = directory.first(
      ['main', 'server', 'index', 'app', 'src/main', 'mod'].flatMap((name) =>
        ['ts', 'tsx', 'js'].map((ending) => `${name}.${ending}`),
      ),
    )
    const isTask = tasks.includes('start')
    const start = isTask
      ? startCommand('deno task start')
      : main === null
        ? null
        : startCommand(`deno run --allow-all ${main}`)
    return [
      {
        kind: 'Deno',
        strength: start === null ? 'none' : 'stated',
        install: null,
        build: tasks.includes('build') ? 'deno task build' : null,
        start,
        obstacle: `${file} has no task "start", and there is no main.ts.`,
        tools: [anyVersion('deno')],
        evidence: [
          await directory.evidence(file, isTask ? /"start"\s*:/ : null),
          ...(main === null || isTask ? [] : [await directory.evidence(main)]),
        ],
        runs: /(?:^|[\s/;&])deno\b/,
      },
    ]
  },
}

function taskNames(text: string): string[] {
  try {
    return Object.keys(fieldsOf(fieldsOf(Bun.JSONC.parse(text)).tasks))
  } catch {
    // Deno itself reports the mistake.
    return []
  }
}
