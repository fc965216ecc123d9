import { runHelper } from '../runtime/run-helper.ts'
import type { ProcessContext } from './process-context.ts'

/** Whether there is a program that opens URLs for a person. */
export const canOpenBrowser = (context: ProcessContext): boolean => openerFor(context) !== null

/**
 * Opens a URL in the person's browser.
 *
 * @returns whether there is one that was asked to; on a machine without a screen there is none
 */
export async function openInBrowser(url: string, context: ProcessContext): Promise<boolean> {
  const opener = openerFor(context)
  if (opener === null) return false
  const { env, cwd } = context
  const { exitCode } = await runHelper([...opener, url], { cwd, env, output: 'ignore' })
  return exitCode === 0
}

function openerFor({ env }: ProcessContext): [program: string, ...args: string[]] | null {
  const [name, ...rest] = openerOf(env) ?? []
  const program = name && Bun.which(name, { PATH: env.PATH ?? '' })
  return program ? [program, ...rest] : null
}

/** The program that hands a URL to the default browser, with its first arguments. */
function openerOf(env: ProcessContext['env']): string[] | undefined {
  if (process.platform === 'darwin') return ['open']
  // `start` belongs to the command interpreter, which would read the "&" of a URL as its own.
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  // Without a screen it would start a browser for text in the terminal.
  return env.DISPLAY || env.WAYLAND_DISPLAY || env.BROWSER ? ['xdg-open'] : undefined
}
