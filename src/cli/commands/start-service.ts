import type { ProcessContext } from '../process-context.ts'

/** Runs the service as its flags say, here or in the background; resolves to the exit code. */
export async function startService(flags: Record<string, unknown>, context: ProcessContext): Promise<number> {
  if (!flags.detach) return (await import('./serve.ts')).serve(flags, context)
  const { detach } = await import('../instances/detach.ts')
  return detach(flags, context)
}
