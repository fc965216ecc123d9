import { runHelper } from '../runtime/run-helper.ts'
import type { ProcessContext } from './process-context.ts'

/** Reports whether this machine has a program that opens URLs for a person. */
export const canOpenBrowser = (context: ProcessContext): boolean => openerFor(context) !== null

/**
 * Opens a URL in the person's browser.
 *
 * @returns whether a program accepted it; false on a machine without a screen
 */
export async function openInBrowser(url: string, context: ProcessContext): Promise<boolean> {
  const opener = openerFor(context)
  if (opener === null) return false
  const { inherited, cwd } = context
  const { exitCode } = await runHelper([...opener, url], { cwd, env: inherited, output: 'ignore' })
  return exitCode === 0
}

function openerFor({ env }: ProcessContext): [program: string, ...args: string[]] | null {
  const [name, ...rest] = openerOf(env) ?? []
  const program = name && Bun.which(name, { PATH: env.PATH ?? '' })
  return program ? [program, ...rest] : null
}

/** Returns the program that opens a URL in the default browser, with its first arguments. */
function openerOf(env: ProcessContext['env']): string[] | undefined {
  if (process.platform === 'darwin') return ['open']
  // `start` would pass through cmd.exe, which interprets the "&" of a URL.
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  // Without a screen, xdg-open starts a text browser in the terminal.
  return env.DISPLAY || env.WAYLAND_DISPLAY || env.BROWSER ? ['xdg-open'] : undefined
}
