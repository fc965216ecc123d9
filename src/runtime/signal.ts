/** Sends a signal; one that has ended already is no fault. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // Ended meanwhile, or not ours.
  }
}
