import type { Terminal } from '../terminal.ts'

/** Runs the service as its flags say, here or in the background; resolves to the exit code. */
export async function startService(flags: Record<string, unknown>, terminal: Terminal): Promise<number> {
  if (!flags.detach) return (await import('./serve.ts')).serve(flags, terminal)
  const { detach } = await import('../instances/detach.ts')
  return detach(flags, terminal)
}
