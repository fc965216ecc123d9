import type { Terminal } from './terminal.ts'

/**
 * Opens a URL in the person's browser.
 *
 * @returns whether there is one that could be told to; on a machine without a screen there is none
 */
export async function openInBrowser(url: string, { env, cwd }: Terminal): Promise<boolean> {
  const command = openerOf(env)
  const program = command?.[0] && Bun.which(command[0], { PATH: env.PATH ?? '' })
  if (!command || !program) return false
  const child = Bun.spawn([program, ...command.slice(1), url], {
    cwd,
    env,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  return (await child.exited) === 0
}

/** The program that hands a URL to the default browser, with its first arguments. */
function openerOf(env: Terminal['env']): string[] | undefined {
  if (process.platform === 'darwin') return ['open']
  // `start` belongs to the command interpreter, which would read the "&" of a URL as its own.
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  // Without a screen it would start a browser for text in the terminal.
  return env.DISPLAY || env.WAYLAND_DISPLAY || env.BROWSER ? ['xdg-open'] : undefined
}
