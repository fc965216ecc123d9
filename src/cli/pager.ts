import type { ProcessContext } from './process-context.ts'

/**
 * Shows a text on the terminal by `$PAGER`, which is `less` by default. A text that fits the screen is only printed.
 * Without a pager the text is printed too.
 */
export async function printPaged(text: string, { env, cwd, stdout }: ProcessContext): Promise<void> {
  const pager = env.PAGER ?? (Bun.which('less', { PATH: env.PATH ?? '' }) === null ? 'cat' : 'less')
  // F ends at once if the text fits, R keeps colours, X leaves the text on the screen.
  const child = Bun.spawn(['sh', '-c', pager], {
    cwd,
    env: { ...env, LESS: env.LESS ?? 'FRX' },
    stdin: new Blob([text]),
    stdout: 'inherit',
    stderr: 'inherit',
  })
  // The pager takes Ctrl-C; berth ends with it.
  const ignore = () => {}
  process.on('SIGINT', ignore)
  const exitCode = await child.exited
  process.off('SIGINT', ignore)
  // 127: sh found no such program.
  if (exitCode === 127) await stdout.write(Buffer.from(text))
}
