import type { ProcessContext } from '../process-context.ts'

/** Runs the service in this process or, with `--detach`, in the background. Resolves to the exit code. */
export async function startService(flags: Record<string, unknown>, context: ProcessContext): Promise<number> {
  if (!flags.detach) return (await import('./serve.ts')).serve(flags, context)
  const { detach } = await import('../instances/detach.ts')
  return detach(flags, context)
}
