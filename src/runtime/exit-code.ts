/** Signals by the exit code of a shell whose command they ended: 128 and the signal's number. */
const SIGNALS: Readonly<Record<number, string>> = {
  129: 'SIGHUP',
  130: 'SIGINT',
  131: 'SIGQUIT',
  134: 'SIGABRT',
  135: 'SIGBUS',
  136: 'SIGFPE',
  137: 'SIGKILL, as it does when memory runs out',
  139: 'SIGSEGV',
  141: 'SIGPIPE',
  143: 'SIGTERM',
}

/**
 * Describes how a shell command ended, as the end of a sentence: `ended with exit code 1` or
 * `was ended by SIGTERM (exit code 143)`.
 */
export function describeExitCode(code: number): string {
  const signal = SIGNALS[code]
  return signal === undefined ? `ended with exit code ${code}` : `was ended by ${signal} (exit code ${code})`
}
