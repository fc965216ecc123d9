/** Makes a directory with files in it and removes it, until it is killed; says so when it begins. */
const CHURN = `
const { mkdirSync, rmSync, writeFileSync } = require('node:fs')
const [path, ...inner] = process.argv.slice(1)
const round = () => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  for (const name of inner) {
    if (name.endsWith('/')) mkdirSync(path + '/' + name, { recursive: true })
    else writeFileSync(path + '/' + name, '{}', { mode: 0o600 })
  }
  rmSync(path, { recursive: true, force: true })
}
round()
console.log('begun')
for (;;) try { round() } catch {}
`

/**
 * Runs an operation again and again while another process makes and removes a directory as fast as it can.
 *
 * @param path the directory, absolute
 * @param inner what is made in it, in this order: files, and directories with `/` at the end
 * @returns how often the operation ran
 * @throws what the operation throws
 */
export async function amidChurn(
  path: string,
  inner: readonly string[],
  operation: () => unknown,
  ms = 600,
): Promise<number> {
  const child = Bun.spawn([process.execPath, '-e', CHURN, path, ...inner], { stderr: 'inherit' })
  try {
    await child.stdout.getReader().read()
    let rounds = 0
    for (const end = performance.now() + ms; performance.now() < end; rounds += 1) await operation()
    return rounds
  } finally {
    child.kill('SIGKILL')
    await child.exited
  }
}
