import { readFileSync } from 'node:fs'

/**
 * Returns the name of the user that this process runs as, by its uid: the environment, which Bun's `os.userInfo`
 * trusts, may name another user or none.
 */
export function userName(): string {
  const uid = String(process.getuid?.() ?? 0)
  try {
    for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
      const [name, , id] = line.split(':')
      if (name && id === uid) return name
    }
  } catch {
    // A container without a user list.
  }
  return uid === '0' ? 'root' : 'user'
}
