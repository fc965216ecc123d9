import { openLibc } from '../../compute/sandboxd/libc.ts'

/**
 * Sends what this process prints from now on to a file: its fatal errors too, which the runtime itself writes.
 *
 * @param fd open for writing
 */
export function redirectOutput(fd: number): void {
  const { dup2 } = openLibc({ dup2: { args: ['int', 'int'], returns: 'int' } })
  for (const stream of [1, 2]) dup2(fd, stream)
}
