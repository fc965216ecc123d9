/**
 * Starts what is left of a server whose berth was killed, if a command got away with it: a sandbox in which nothing carries
 * a marker, and which no process of berth's is a parent of.
 *
 * @param workspace absolute path of the server's workspace
 * @param args arguments behind its command, which does nothing with them
 */
export function startSurvivor(workspace: string, ...args: string[]): Bun.Subprocess {
  const own = ['--unshare-user', '--unshare-pid', '--uid', '1000', '--proc', '/proc', '--dev', '/dev']
  const system = ['usr', 'bin', 'lib', 'lib64'].flatMap((name) => ['--ro-bind-try', `/${name}`, `/${name}`])
  const command = args.length === 0 ? ['sleep', '300'] : ['sh', '-c', 'sleep 300; :', ...args]
  return Bun.spawn(['bwrap', ...own, ...system, '--bind', workspace, '/workspace', ...command], {
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
