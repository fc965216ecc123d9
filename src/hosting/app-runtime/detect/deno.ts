import { fieldsOf } from '../../../runtime/is-object.ts'
import { type DetectedApp, type Detector, startCommand, unknownStart } from './detected-app.ts'

/** Deno, by its configuration: its task `start`, else its main file. */
export const detectDeno: Detector = async (app) => {
  const file = await app.first(['deno.json', 'deno.jsonc'])
  if (file === null) return null
  const tasks = taskNames((await app.text(file)) ?? '')
  const main = await app.first(
    ['main', 'server', 'index', 'app', 'src/main', 'mod'].flatMap((name) => [
      `${name}.ts`,
      `${name}.tsx`,
      `${name}.js`,
    ]),
  )
  const start: DetectedApp['start'] = tasks.includes('start')
    ? startCommand('deno task start')
    : main === null
      ? unknownStart(`${file} has no task "start", and there is no main.ts.`)
      : startCommand(`deno run --allow-all ${main}`)
  const build = tasks.includes('build') ? 'deno task build' : null
  return { kind: 'Deno', install: null, build, start, bin: null, needs: ['deno'] }
}

function taskNames(text: string): string[] {
  try {
    return Object.keys(fieldsOf(fieldsOf(Bun.JSONC.parse(text)).tasks))
  } catch {
    // Deno itself reports the mistake.
    return []
  }
}
