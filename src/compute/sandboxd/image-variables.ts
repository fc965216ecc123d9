import type { InheritedVariables } from './protocol.ts'

/**
 * Variables that engines set by themselves. Podman passes on the proxies of its machine, which may have passwords; a
 * kubelet names the API server.
 */
const BY_ENGINES =
  /^(?:HOME|HOSTNAME|TERM|PWD|OLDPWD|SHLVL|_|container|INVOCATION_ID|\w+_proxy|KUBERNETES_\w+|BERTH_\w+)$/i

/**
 * Adds the variables that an image sets to the environment of commands. Those of `env` are before them, but for `LANG`, and
 * the image's PATH takes the place of `inherited.path` in that of `env`: its programs are found before berth's.
 *
 * @param own the variables of this process
 */
export function withImageVariables(
  env: Record<string, string>,
  own: Readonly<Record<string, string | undefined>>,
  { except, path }: InheritedVariables,
): Record<string, string> {
  const set = Object.entries(own).flatMap(([name, value]): [string, string][] =>
    value === undefined || except.includes(name) || BY_ENGINES.test(name) ? [] : [[name, value]],
  )
  const { PATH = path, LANG, ...others } = Object.fromEntries(set)
  return {
    ...others,
    // That of an image, below its GOPATH, is read-only.
    ...(!others.GOPATH ? {} : { GOBIN: `${env.HOME}/go/bin` }),
    ...env,
    ...(LANG === undefined ? {} : { LANG }),
    ...(env.PATH === undefined ? {} : { PATH: env.PATH.replace(path, () => PATH) }),
  }
}
